//! What an owner asks of a queue pair, and what it hears back.

use super::wire::NakCode;

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendRequest {
    /// The owner's own name for it.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
    /// Where in the arena its bytes are, or where those read go.
    pub offset: usize,
    /// Bytes.
    pub length: usize,
    /// Its success is told. A failure always is.
    pub is_signaled: bool,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Into the next receive that the peer has posted.
    Send {
        /// Four bytes for its completion.
        immediate: Option<u32>,
    },
    /// Into the peer's memory.
    Write {
        /// Where.
        to: Remote,
        /// With it the peer is told, and a receive of it is used up.
        immediate: Option<u32>,
    },
    /// From the peer's memory.
    Read {
        /// Where.
        from: Remote,
    },
}

/// A place in the peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// As the peer counts.
    pub address: u64,
    /// The key that the peer gave.
    pub key: u32,
}

/// A place for one message that the peer sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveRequest {
    /// The owner's own name for it.
    pub id: u64,
    /// Where in the arena.
    pub offset: usize,
    /// Bytes there; none are needed for the immediate of an RDMA WRITE.
    pub length: usize,
}

/// A request or receive has ended. Of each kind they come in the order of posting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// A request.
    Send {
        /// Its name.
        id: u64,
        /// How it went.
        status: Result<(), Failure>,
    },
    /// A receive.
    Receive {
        /// Its name.
        id: u64,
        /// How it went.
        status: Result<Received, Failure>,
    },
}

/// What used a receive up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Bytes of the message: in the receive's place, or wherever the peer wrote them.
    pub length: usize,
    /// An RDMA WRITE did, and not a SEND.
    pub is_write: bool,
    /// The four bytes, where the peer gave any.
    pub immediate: Option<u32>,
}

/// Why a request or receive failed; the first of them is why the queue pair broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The peer refused the request.
    Refused(NakCode),
    /// The peer does not answer.
    RetryExceeded,
    /// The peer has had no receive posted for too long.
    RnrRetryExceeded,
    /// The peer answered an RDMA READ with something else than was asked.
    BadResponse,
    /// This end refused a request of the peer.
    RefusedPeer(NakCode),
    /// The owner has ended it.
    Closed,
    /// It was still waiting when the queue pair broke.
    Flushed,
}

/// Why a request or receive cannot be posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostError {
    /// As many are posted as there may be.
    Full,
    /// Longer than the longest message.
    TooLong,
    /// Not in the arena.
    Bounds,
    /// The settings allow no RDMA READ.
    NoReads,
    /// The queue pair is not connected.
    NotConnected,
}
