//! InstrumentRequest and InstrumentDefinition: a native client asks which id a symbol has.

use types::{InstrumentId, Price, Symbol};
use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{diagnose, header_of};
use super::{DecodeError, Template, emit, view};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct InstrumentRequestLayout {
    header: U64,
    /// 0: all.
    instrument: U32,
    reserved1: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct InstrumentDefinitionLayout {
    header: U64,
    instrument: U32,
    /// Units in a lot.
    lot_size: U32,
    /// 1e-9.
    tick_size: I64,
    /// 1e-9; [`Price::NULL`]: none.
    reference_price: I64,
    /// ASCII, zeros on the right.
    symbol: [u8; Symbol::MAX_LENGTH],
    /// Definitions.
    remaining: U32,
    reserved1: U32,
}

const _: () = assert!(size_of::<InstrumentRequestLayout>() == 16);
const _: () = assert!(size_of::<InstrumentDefinitionLayout>() == 56);

const INSTRUMENT_REQUEST: u64 = Template::InstrumentRequest.header();
const INSTRUMENT_DEFINITION: u64 = Template::InstrumentDefinition.header();

/// One instrument, as a native client learns of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstrumentDefinition {
    /// What orders call it.
    pub instrument: InstrumentId,
    /// What people call it.
    pub symbol: Symbol,
    /// Smallest price step, 1e-9.
    pub tick_size: Price,
    /// Units in a lot. Quantities are counted in lots.
    pub lot_size: u32,
    /// The instrument master's price, 1e-9; [`Price::NULL`] for none.
    pub reference_price: Price,
    /// How many definitions follow in answer to the same request; 0 in the last.
    pub remaining: u32,
}

pub(super) fn decode_request(bytes: &[u8]) -> Result<Option<InstrumentId>, DecodeError> {
    match header_of(bytes) {
        INSTRUMENT_REQUEST => view::<InstrumentRequestLayout>(bytes).map(InstrumentRequestLayout::parse),
        _ => Err(diagnose(bytes)),
    }
}

/// Encodes the request for the definition of one instrument or all; returns its length.
///
/// # Panics
/// When `out` is shorter than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH).
pub fn encode_instrument_request(instrument: Option<InstrumentId>, out: &mut [u8]) -> usize {
    let layout = InstrumentRequestLayout {
        header: U64::new(INSTRUMENT_REQUEST),
        instrument: U32::new(instrument.unwrap_or_default().0),
        reserved1: U32::ZERO,
    };
    emit(&layout, out)
}

pub(super) fn decode_definition(bytes: &[u8]) -> Result<InstrumentDefinition, DecodeError> {
    match header_of(bytes) {
        INSTRUMENT_DEFINITION => view::<InstrumentDefinitionLayout>(bytes)?.parse(),
        _ => Err(diagnose(bytes)),
    }
}

/// Encodes a definition; returns its length.
///
/// # Panics
/// When `out` is shorter than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH).
pub fn encode_instrument_definition(definition: &InstrumentDefinition, out: &mut [u8]) -> usize {
    let mut symbol = [0; Symbol::MAX_LENGTH];
    let text = definition.symbol.as_bytes();
    symbol[..text.len()].copy_from_slice(text);
    let layout = InstrumentDefinitionLayout {
        header: U64::new(INSTRUMENT_DEFINITION),
        instrument: U32::new(definition.instrument.0),
        lot_size: U32::new(definition.lot_size),
        tick_size: I64::new(definition.tick_size.0),
        reference_price: I64::new(definition.reference_price.0),
        symbol,
        remaining: U32::new(definition.remaining),
        reserved1: U32::ZERO,
    };
    emit(&layout, out)
}

impl InstrumentRequestLayout {
    fn parse(&self) -> Option<InstrumentId> {
        match self.instrument.get() {
            0 => None,
            instrument => Some(InstrumentId(instrument)),
        }
    }
}

impl InstrumentDefinitionLayout {
    fn parse(&self) -> Result<InstrumentDefinition, DecodeError> {
        let length = self
            .symbol
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(Symbol::MAX_LENGTH);
        let (text, padding) = self.symbol.split_at(length);
        if padding.iter().any(|&byte| byte != 0) {
            return Err(DecodeError::InvalidSymbol);
        }
        Ok(InstrumentDefinition {
            instrument: InstrumentId(self.instrument.get()),
            symbol: Symbol::new(text).ok_or(DecodeError::InvalidSymbol)?,
            tick_size: Price(self.tick_size.get()),
            lot_size: self.lot_size.get(),
            reference_price: Price(self.reference_price.get()),
            remaining: self.remaining.get(),
        })
    }
}
