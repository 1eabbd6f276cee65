//! What a packet is, and which headers follow its first one.

/// The opcodes of a reliable connection and the congestion notification (InfiniBand Architecture, table 38; annex A17).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// SEND, the first packet of several.
    SendFirst = 0x00,
    /// SEND, neither first nor last.
    SendMiddle = 0x01,
    /// SEND, the last packet of several.
    SendLast = 0x02,
    /// SEND, the last packet of several, with immediate.
    SendLastImmediate = 0x03,
    /// SEND of one packet.
    SendOnly = 0x04,
    /// SEND of one packet, with immediate.
    SendOnlyImmediate = 0x05,
    /// RDMA WRITE, the first packet of several.
    WriteFirst = 0x06,
    /// RDMA WRITE, neither first nor last.
    WriteMiddle = 0x07,
    /// RDMA WRITE, the last packet of several.
    WriteLast = 0x08,
    /// RDMA WRITE, the last packet of several, with immediate.
    WriteLastImmediate = 0x09,
    /// RDMA WRITE of one packet.
    WriteOnly = 0x0a,
    /// RDMA WRITE of one packet, with immediate.
    WriteOnlyImmediate = 0x0b,
    /// RDMA READ, the request.
    ReadRequest = 0x0c,
    /// RDMA READ response, the first packet of several.
    ReadResponseFirst = 0x0d,
    /// RDMA READ response, neither first nor last.
    ReadResponseMiddle = 0x0e,
    /// RDMA READ response, the last packet of several.
    ReadResponseLast = 0x0f,
    /// RDMA READ response of one packet.
    ReadResponseOnly = 0x10,
    /// An acknowledgement or a refusal.
    Acknowledge = 0x11,
    /// Atomic compare and swap: not served here.
    CompareSwap = 0x13,
    /// Atomic fetch and add: not served here.
    FetchAdd = 0x14,
    /// SEND LAST with invalidate: not served here.
    SendLastInvalidate = 0x16,
    /// SEND ONLY with invalidate: not served here.
    SendOnlyInvalidate = 0x17,
    /// CNP, the congestion notification.
    CongestionNotification = 0x81,
}

/// What an opcode belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ, the request.
    ReadRequest,
    /// RDMA READ, the response.
    ReadResponse,
    /// An acknowledgement or a refusal.
    Acknowledge,
    /// A request that is known and not served.
    Unserved,
    /// A congestion notification.
    CongestionNotification,
}

/// An opcode taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// What it belongs to.
    pub class: Class,
    /// A message begins with it.
    pub is_first: bool,
    /// A message ends with it.
    pub is_last: bool,
    /// Four bytes for the receiver's completion come with it.
    pub has_immediate: bool,
}

impl Opcode {
    /// From its byte.
    #[must_use]
    pub const fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::SendFirst,
            0x01 => Self::SendMiddle,
            0x02 => Self::SendLast,
            0x03 => Self::SendLastImmediate,
            0x04 => Self::SendOnly,
            0x05 => Self::SendOnlyImmediate,
            0x06 => Self::WriteFirst,
            0x07 => Self::WriteMiddle,
            0x08 => Self::WriteLast,
            0x09 => Self::WriteLastImmediate,
            0x0a => Self::WriteOnly,
            0x0b => Self::WriteOnlyImmediate,
            0x0c => Self::ReadRequest,
            0x0d => Self::ReadResponseFirst,
            0x0e => Self::ReadResponseMiddle,
            0x0f => Self::ReadResponseLast,
            0x10 => Self::ReadResponseOnly,
            0x11 => Self::Acknowledge,
            0x13 => Self::CompareSwap,
            0x14 => Self::FetchAdd,
            0x16 => Self::SendLastInvalidate,
            0x17 => Self::SendOnlyInvalidate,
            0x81 => Self::CongestionNotification,
            _ => return None,
        })
    }

    /// The opcode of a SEND's packet.
    #[must_use]
    pub const fn send(is_first: bool, is_last: bool, has_immediate: bool) -> Self {
        match (is_first, is_last, has_immediate) {
            (true, true, false) => Self::SendOnly,
            (true, true, true) => Self::SendOnlyImmediate,
            (true, false, _) => Self::SendFirst,
            (false, false, _) => Self::SendMiddle,
            (false, true, false) => Self::SendLast,
            (false, true, true) => Self::SendLastImmediate,
        }
    }

    /// The opcode of an RDMA WRITE's packet.
    #[must_use]
    pub const fn write(is_first: bool, is_last: bool, has_immediate: bool) -> Self {
        match (is_first, is_last, has_immediate) {
            (true, true, false) => Self::WriteOnly,
            (true, true, true) => Self::WriteOnlyImmediate,
            (true, false, _) => Self::WriteFirst,
            (false, false, _) => Self::WriteMiddle,
            (false, true, false) => Self::WriteLast,
            (false, true, true) => Self::WriteLastImmediate,
        }
    }

    /// The opcode of an RDMA READ response's packet.
    #[must_use]
    pub const fn read_response(is_first: bool, is_last: bool) -> Self {
        match (is_first, is_last) {
            (true, true) => Self::ReadResponseOnly,
            (true, false) => Self::ReadResponseFirst,
            (false, false) => Self::ReadResponseMiddle,
            (false, true) => Self::ReadResponseLast,
        }
    }

    /// Taken apart.
    #[must_use]
    pub const fn shape(self) -> Shape {
        let (class, is_first, is_last, has_immediate) = match self {
            Self::SendFirst => (Class::Send, true, false, false),
            Self::SendMiddle => (Class::Send, false, false, false),
            Self::SendLast => (Class::Send, false, true, false),
            Self::SendLastImmediate => (Class::Send, false, true, true),
            Self::SendOnly => (Class::Send, true, true, false),
            Self::SendOnlyImmediate => (Class::Send, true, true, true),
            Self::WriteFirst => (Class::Write, true, false, false),
            Self::WriteMiddle => (Class::Write, false, false, false),
            Self::WriteLast => (Class::Write, false, true, false),
            Self::WriteLastImmediate => (Class::Write, false, true, true),
            Self::WriteOnly => (Class::Write, true, true, false),
            Self::WriteOnlyImmediate => (Class::Write, true, true, true),
            Self::ReadRequest => (Class::ReadRequest, true, true, false),
            Self::ReadResponseFirst => (Class::ReadResponse, true, false, false),
            Self::ReadResponseMiddle => (Class::ReadResponse, false, false, false),
            Self::ReadResponseLast => (Class::ReadResponse, false, true, false),
            Self::ReadResponseOnly => (Class::ReadResponse, true, true, false),
            Self::Acknowledge => (Class::Acknowledge, true, true, false),
            Self::CompareSwap | Self::FetchAdd | Self::SendLastInvalidate | Self::SendOnlyInvalidate => {
                (Class::Unserved, true, true, false)
            }
            Self::CongestionNotification => (Class::CongestionNotification, true, true, false),
        };
        Shape {
            class,
            is_first,
            is_last,
            has_immediate,
        }
    }
}

impl Shape {
    /// An RDMA extended header follows.
    #[must_use]
    pub fn has_reth(self) -> bool {
        self.class == Class::ReadRequest || (self.class == Class::Write && self.is_first)
    }

    /// An acknowledgement header follows.
    #[must_use]
    pub fn has_aeth(self) -> bool {
        let answers = self.class == Class::Acknowledge || self.class == Class::ReadResponse;
        answers && (self.is_first || self.is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opcode_is_put_together_as_it_is_taken_apart() {
        let mut seen = 0;
        for byte in 0..=u8::MAX {
            let Some(opcode) = Opcode::from_u8(byte) else { continue };
            assert_eq!(opcode as u8, byte);
            seen += 1;
            let Shape {
                class,
                is_first,
                is_last,
                has_immediate,
            } = opcode.shape();
            match class {
                Class::Send => assert_eq!(Opcode::send(is_first, is_last, has_immediate), opcode),
                Class::Write => assert_eq!(Opcode::write(is_first, is_last, has_immediate), opcode),
                Class::ReadResponse => assert_eq!(Opcode::read_response(is_first, is_last), opcode),
                _ => {}
            }
        }
        assert_eq!(seen, 23);
    }
}
