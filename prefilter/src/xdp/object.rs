//! The object file that clang makes of `bpf/prefilter.c`: the instructions of a program, with the maps that it names put
//! in. ELF of 64 bits, little-endian, relocations without addends, as the kernel's `bpf/llvm_reloc` describes them.

use net::bpf::Instruction;

/// What is wrong with an object file; none that the build made has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unreadable(&'static str);

impl From<Unreadable> for std::io::Error {
    fn from(unreadable: Unreadable) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, unreadable.0)
    }
}

/// The program of a section. `map` tells the descriptor of a map by its name.
pub(super) fn program(
    object: &[u8],
    section: &str,
    map: impl Fn(&str) -> Option<i32>,
) -> Result<Vec<Instruction>, Unreadable> {
    let elf = Elf::of(object)?;
    let code = elf.section(section).ok_or(Unreadable("no such program"))?;
    let mut code: Vec<_> = elf
        .contents(code)?
        .chunks_exact(8)
        .map(|bytes| Instruction(u64_at(bytes, 0).unwrap_or(0)))
        .collect();
    let symbols = elf.contents(elf.section(".symtab").ok_or(Unreadable("no symbols"))?)?;
    let Some(relocations) = elf.section(&format!(".rel{section}")) else {
        return Ok(code);
    };
    for entry in elf.contents(relocations)?.chunks_exact(RELOCATION) {
        let (offset, info) = (u64_at(entry, 0)?, u64_at(entry, 8)?);
        if info & 0xffff_ffff != R_BPF_64_64 {
            return Err(Unreadable("a relocation of another kind"));
        }
        let symbol = usize::try_from(info >> 32).map_err(|_| CUT_OFF)? * SYMBOL;
        let name = text_at(elf.names, u32_at(symbols, symbol)? as usize)?;
        let fd = map(name).ok_or(Unreadable("a map that nobody knows"))?;
        let place = usize::try_from(offset / 8).map_err(|_| CUT_OFF)?;
        let load = code.get_mut(place).ok_or(CUT_OFF)?;
        // The number is the map's descriptor: RFC 9669, 5.4.
        load.0 |= SOURCE_MAP_FD << 12 | u64::from(fd.cast_unsigned()) << 32;
    }
    Ok(code)
}

struct Elf<'a> {
    bytes: &'a [u8],
    sections: &'a [u8],
    names: &'a [u8],
}

impl<'a> Elf<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(Unreadable("no little-endian ELF of 64 bits"));
        }
        let start = usize::try_from(u64_at(bytes, 0x28)?).map_err(|_| CUT_OFF)?;
        let count = usize::from(u16_at(bytes, 0x3c)?);
        let sections = bytes.get(start..start + count * SECTION).ok_or(CUT_OFF)?;
        let mut elf = Self {
            bytes,
            sections,
            names: &[],
        };
        let names = usize::from(u16_at(bytes, 0x3e)?) * SECTION;
        elf.names = elf.contents(sections.get(names..names + SECTION).ok_or(CUT_OFF)?)?;
        Ok(elf)
    }

    /// The header of a section.
    fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections.chunks_exact(SECTION).find(|header| {
            let place = u32_at(header, 0).map(|place| place as usize);
            place.and_then(|place| text_at(self.names, place)) == Ok(name)
        })
    }

    fn contents(&self, header: &[u8]) -> Result<&'a [u8], Unreadable> {
        let start = usize::try_from(u64_at(header, 0x18)?).map_err(|_| CUT_OFF)?;
        let length = usize::try_from(u64_at(header, 0x20)?).map_err(|_| CUT_OFF)?;
        self.bytes.get(start..start + length).ok_or(CUT_OFF)
    }
}

/// Bytes of a section's header, of a symbol, and of a relocation.
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const RELOCATION: usize = 16;
const R_BPF_64_64: u64 = 1;
const SOURCE_MAP_FD: u64 = 1;
const CUT_OFF: Unreadable = Unreadable("it is cut off");

fn text_at(bytes: &[u8], offset: usize) -> Result<&str, Unreadable> {
    let rest = bytes.get(offset..).ok_or(CUT_OFF)?;
    let end = rest.iter().position(|&byte| byte == 0).ok_or(CUT_OFF)?;
    std::str::from_utf8(&rest[..end]).map_err(|_| Unreadable("a name that is no text"))
}

fn u64_at(bytes: &[u8], offset: usize) -> Result<u64, Unreadable> {
    let bytes = bytes.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_le_bytes).ok_or(CUT_OFF)
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32, Unreadable> {
    let bytes = bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_le_bytes).ok_or(CUT_OFF)
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, Unreadable> {
    let bytes = bytes.get(offset..offset + 2).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u16::from_le_bytes).ok_or(CUT_OFF)
}
