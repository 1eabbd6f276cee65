//! The program at the interface's receive hook: frames for our ports go to the sockets of [`super::queue`], everything
//! else goes on to the kernel as if nothing were there.
//!
//! It is assembled here, a few dozen instructions, so that a build needs no second compiler and a reader sees all of it.
//! In C it would be
//!
//! ```c
//! struct flow key = { ip->daddr, udp->dest, ctx->rx_queue_index };
//! if (is_plain_udp && bpf_map_lookup_elem(&flows, &key))
//!     return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
//! return XDP_PASS;
//! ```
//!
//! A frame of our port that comes on a queue without our socket is passed on too: the kernel's socket that holds the
//! port gets it, where `ss -uan` shows it waiting. The instruction set is RFC 9669.

use crate::bpf::Instruction;
use std::net::Ipv4Addr;

/// Key of the map of flows: what a frame must carry, and the queue it must come on, to be ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowKey {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) queue: u16,
}

impl FlowKey {
    /// Bytes of a key.
    pub(super) const LENGTH: u32 = 8;

    /// As the program puts it on its stack: address and port as the frame has them, the queue in the host's order.
    pub(super) fn bytes(self) -> [u8; Self::LENGTH as usize] {
        let [a, b, c, d] = self.address.octets();
        let ([p, q], [r, s]) = (self.port.to_be_bytes(), self.queue.to_ne_bytes());
        [a, b, c, d, p, q, r, s]
    }
}

/// Assembles the program over its two maps, given by their file descriptors.
pub(super) fn assemble(flows: i32, sockets: i32) -> Vec<Instruction> {
    // What r6 to r9 hold outlives a call; r1 to r5 are a call's arguments, r0 is its result; r10 is the top of the stack.
    let (context, data, end, value, key) = (R6, R7, R2, R3, R10);
    let mut code = Assembler::default();
    code.push(copy(context, R1));
    code.push(load(WORD, end, context, CONTEXT_DATA_END));
    code.push(load(WORD, data, context, CONTEXT_DATA));
    // The verifier lets us read what was compared with the end.
    code.push(copy(value, data));
    code.push(add(value, HEADER_LENGTH));
    code.pass_if(JUMP_ABOVE, value, end);
    code.push(load(HALF, value, data, ETHERTYPE));
    code.pass_unless(value, i32::from(0x0800_u16.to_be()));
    // IPv4 without options.
    code.push(load(BYTE, value, data, IP_VERSION_AND_LENGTH));
    code.pass_unless(value, 0x45);
    // No fragment: neither "more fragments" nor an offset.
    code.push(load(HALF, value, data, IP_FLAGS_AND_OFFSET));
    code.push(and(value, i32::from(0x3fff_u16.to_be())));
    code.pass_unless(value, 0);
    code.push(load(BYTE, value, data, IP_PROTOCOL));
    code.pass_unless(value, 17);
    // The key, below the top of the stack.
    code.push(load(WORD, value, data, IP_DESTINATION));
    code.push(store(WORD, key, -8, value));
    code.push(load(HALF, value, data, UDP_DESTINATION));
    code.push(store(HALF, key, -4, value));
    code.push(load(WORD, value, context, CONTEXT_QUEUE));
    code.push(store(HALF, key, -2, value));
    code.load_map(R1, flows);
    code.push(copy(R2, key));
    code.push(add(R2, -8));
    code.push(call(MAP_LOOKUP_ELEM));
    code.pass_unless_found();
    code.load_map(R1, sockets);
    code.push(load(WORD, R2, context, CONTEXT_QUEUE));
    // What the call returns when there is no socket at this place of the map.
    code.push(set(R3, XDP_PASS));
    code.push(call(REDIRECT_MAP));
    code.push(exit());
    code.finish()
}

/// Collects instructions; jumps to the end are filled in when it is known where that is.
#[derive(Default)]
struct Assembler {
    code: Vec<Instruction>,
    passes: Vec<usize>,
}

impl Assembler {
    fn push(&mut self, instruction: Instruction) {
        self.code.push(instruction);
    }

    fn pass(&mut self, jump: Instruction) {
        self.passes.push(self.code.len());
        self.push(jump);
    }

    /// Passes the frame on when the comparison of two registers holds.
    fn pass_if(&mut self, comparison: u8, left: u8, right: u8) {
        self.pass(instruction(
            comparison | CLASS_JUMP | SOURCE_REGISTER,
            left,
            right,
            0,
            0,
        ));
    }

    /// Passes the frame on unless the register has this value.
    fn pass_unless(&mut self, register: u8, value: i32) {
        self.pass(instruction(JUMP_UNEQUAL | CLASS_JUMP, register, 0, 0, value));
    }

    /// Passes the frame on when a lookup gave a null pointer.
    fn pass_unless_found(&mut self) {
        self.pass(instruction(JUMP_EQUAL | CLASS_JUMP, R0, 0, 0, 0));
    }

    /// The one instruction that takes two places: its second half is the upper half of a number of 64 bits.
    fn load_map(&mut self, register: u8, map: i32) {
        self.push(instruction(LOAD_IMMEDIATE_64, register, SOURCE_MAP_FD, 0, map));
        self.push(Instruction(0));
    }

    fn finish(mut self) -> Vec<Instruction> {
        let end = self.code.len();
        for at in self.passes {
            // Counted from the instruction after the jump. The program is far shorter than an i16 can count.
            let offset = i16::try_from(end - at - 1).expect("a program of a few dozen instructions");
            self.code[at].0 |= u64::from(offset.cast_unsigned()) << 16;
        }
        self.code.push(set(R0, XDP_PASS));
        self.code.push(exit());
        self.code
    }
}

/// RFC 9669, 3: opcode, destination and source register, offset, immediate.
const fn instruction(opcode: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction(
        opcode as u64
            | (destination as u64) << 8
            | (source as u64) << 12
            | (offset.cast_unsigned() as u64) << 16
            | (immediate.cast_unsigned() as u64) << 32,
    )
}

const fn copy(to: u8, from: u8) -> Instruction {
    instruction(OPERATION_MOVE | CLASS_ALU64 | SOURCE_REGISTER, to, from, 0, 0)
}

const fn set(register: u8, value: i32) -> Instruction {
    instruction(OPERATION_MOVE | CLASS_ALU64, register, 0, 0, value)
}

const fn add(register: u8, value: i32) -> Instruction {
    instruction(OPERATION_ADD | CLASS_ALU64, register, 0, 0, value)
}

const fn and(register: u8, value: i32) -> Instruction {
    instruction(OPERATION_AND | CLASS_ALU64, register, 0, 0, value)
}

const fn load(size: u8, to: u8, base: u8, offset: i16) -> Instruction {
    instruction(MODE_MEMORY | CLASS_LOAD | size, to, base, offset, 0)
}

const fn store(size: u8, base: u8, offset: i16, from: u8) -> Instruction {
    instruction(MODE_MEMORY | CLASS_STORE | size, base, from, offset, 0)
}

const fn call(helper: i32) -> Instruction {
    instruction(OPERATION_CALL | CLASS_JUMP, 0, 0, 0, helper)
}

const fn exit() -> Instruction {
    instruction(OPERATION_EXIT | CLASS_JUMP, 0, 0, 0, 0)
}

const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R6: u8 = 6;
const R7: u8 = 7;
const R10: u8 = 10;

const CLASS_LOAD: u8 = 0x01;
const CLASS_STORE: u8 = 0x03;
const CLASS_JUMP: u8 = 0x05;
const CLASS_ALU64: u8 = 0x07;
const SOURCE_REGISTER: u8 = 0x08;
const MODE_MEMORY: u8 = 0x60;
const WORD: u8 = 0x00;
const HALF: u8 = 0x08;
const BYTE: u8 = 0x10;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const SOURCE_MAP_FD: u8 = 1;
const OPERATION_ADD: u8 = 0x00;
const OPERATION_AND: u8 = 0x50;
const OPERATION_MOVE: u8 = 0xb0;
const OPERATION_CALL: u8 = 0x80;
const OPERATION_EXIT: u8 = 0x90;
const JUMP_EQUAL: u8 = 0x10;
const JUMP_ABOVE: u8 = 0x20;
const JUMP_UNEQUAL: u8 = 0x50;

/// Helper functions of the kernel, `linux/bpf.h`.
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;

/// Members of `struct xdp_md`, the program's argument.
const CONTEXT_DATA: i16 = 0;
const CONTEXT_DATA_END: i16 = 4;
const CONTEXT_QUEUE: i16 = 16;

/// Places in the frame; see [`super::frame`].
const HEADER_LENGTH: i32 = 42;
const ETHERTYPE: i16 = 12;
const IP_VERSION_AND_LENGTH: i16 = 14;
const IP_FLAGS_AND_OFFSET: i16 = 20;
const IP_PROTOCOL: i16 = 23;
const IP_DESTINATION: i16 = 30;
const UDP_DESTINATION: i16 = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_address_and_port_as_frames_have_them() {
        let key = FlowKey {
            address: Ipv4Addr::new(10, 77, 0, 2),
            port: 7_201,
            queue: 1,
        };
        let [q, r] = 1_u16.to_ne_bytes();
        assert_eq!(key.bytes(), [10, 77, 0, 2, 0x1c, 0x21, q, r]);
    }

    #[test]
    fn every_jump_leads_to_the_end_that_passes() {
        let code = assemble(5, 6);
        let end = code.len() - 2;
        assert_eq!(code[end..], [set(R0, XDP_PASS), exit()]);
        let jumps = code.iter().enumerate().filter(|(_, Instruction(bits))| {
            let is_jump = bits & 0x07 == u64::from(CLASS_JUMP);
            let others = [OPERATION_CALL, OPERATION_EXIT].map(u64::from);
            is_jump && !others.contains(&(bits & 0xf0))
        });
        let targets: Vec<_> = jumps
            .map(|(at, Instruction(bits))| at + 1 + (bits >> 16 & 0xffff) as usize)
            .collect();
        assert_eq!(targets, [end; 6]);
    }

    #[test]
    fn an_instruction_is_laid_out_as_the_standard_says() {
        // r2 = *(u32 *)(r6 + 4), as clang and llvm-objdump have it: 61 62 04 00 00 00 00 00.
        let bytes = load(WORD, R2, R6, CONTEXT_DATA_END).0.to_le_bytes();
        assert_eq!(bytes, [0x61, 0x62, 0x04, 0, 0, 0, 0, 0]);
        // if r3 != 17 goto +0: 55 03 00 00 11 00 00 00.
        let bytes = instruction(JUMP_UNEQUAL | CLASS_JUMP, R3, 0, 0, 17).0.to_le_bytes();
        assert_eq!(bytes, [0x55, 0x03, 0, 0, 0x11, 0, 0, 0]);
        // r2 += -8: 07 02 00 00 f8 ff ff ff.
        assert_eq!(add(R2, -8).0.to_le_bytes(), [0x07, 0x02, 0, 0, 0xf8, 0xff, 0xff, 0xff]);
    }
}
