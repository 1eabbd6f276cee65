//! The half of a queue pair that serves: the peer's requests in turn, receives, answers.
//!
//! Only the packet whose turn it is changes anything. One of the past is answered again; one ahead draws a single NAK, and
//! then silence until its turn has come.

use super::NEVER;
use super::config::Config;
use super::counters::Counters;
use super::psn;
use super::region::{Regions, Want};
use super::requester::{packets_of, ring_place};
use super::wire::{Acknowledgement, Class, NakCode, Opcode, Packet, Reth, Shape, Syndrome};
use super::work::{Completion, Failure, PostError, ReceiveRequest, Received};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use types::Timestamp;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Responder {
    config: Config,
    receives: Box<[Receive]>,
    /// The oldest receive whose end the owner has not heard.
    polled: u64,
    /// The next to be used up.
    used: u64,
    /// The next to be posted.
    posted: u64,
    /// The packet whose turn it is.
    expected: u64,
    /// Messages executed, of which the wire has 24 bits.
    msn: u32,
    message: Message,
    /// Responses to RDMA READs, which leave before the answer to what came behind those.
    jobs: VecDeque<Job>,
    /// The peer was told which packet's turn it is.
    is_nak_sent: bool,
    answer: Option<Syndrome>,
    /// When to acknowledge what did not ask for it.
    ack_at: Timestamp,
    is_broken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Receive {
    request: ReceiveRequest,
    outcome: Received,
}

/// What the packets of one message have come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    /// None has begun.
    None,
    /// SEND, into the next receive.
    Send { received: usize },
    /// RDMA WRITE.
    Write { offset: usize, left: usize, length: usize },
}

/// The rest of one RDMA READ's response.
#[derive(Clone, Copy, Debug)]
struct Job {
    psn: u64,
    offset: usize,
    left: usize,
    is_first: bool,
}

impl Responder {
    pub(super) fn new(config: Config) -> Self {
        let empty = Receive {
            request: ReceiveRequest {
                id: 0,
                offset: 0,
                length: 0,
            },
            outcome: Received {
                length: 0,
                is_write: false,
                immediate: None,
            },
        };
        Self {
            config,
            receives: vec![empty; config.receive_queue.next_power_of_two()].into(),
            polled: 0,
            used: 0,
            posted: 0,
            expected: 0,
            msn: 0,
            message: Message::None,
            jobs: VecDeque::with_capacity(2 * config.reads),
            is_nak_sent: false,
            answer: None,
            ack_at: NEVER,
            is_broken: false,
        }
    }

    /// Bytes that it allocates.
    pub(super) const fn memory(config: &Config) -> usize {
        config.receive_queue.next_power_of_two() * size_of::<Receive>() + 2 * config.reads * size_of::<Job>()
    }

    /// Begins anew with an empty queue.
    pub(super) fn start(&mut self, receive_psn: u32) {
        (self.polled, self.used, self.posted) = (0, 0, 0);
        self.expected = psn::start(receive_psn);
        self.msn = 0;
        self.message = Message::None;
        self.jobs.clear();
        (self.is_nak_sent, self.answer, self.ack_at) = (false, None, NEVER);
        self.is_broken = false;
    }

    /// Receives that can be posted now.
    #[allow(clippy::cast_possible_truncation, reason = "bounded by the ring's capacity, a usize")]
    pub(super) const fn room(&self) -> usize {
        self.config.receive_queue - (self.posted - self.polled) as usize
    }

    pub(super) fn post(&mut self, request: ReceiveRequest, regions: &Regions) -> Result<(), PostError> {
        if self.room() == 0 {
            return Err(PostError::Full);
        }
        if !regions.holds(request.offset, request.length) {
            return Err(PostError::Bounds);
        }
        let index = ring_place(self.posted, self.receives.len());
        self.receives[index].request = request;
        self.posted += 1;
        Ok(())
    }

    /// The next receive that has ended.
    pub(super) fn poll_completion(&mut self) -> Option<Completion> {
        let Receive { request, outcome } = self.receives[ring_place(self.polled, self.receives.len())];
        let status = if self.polled < self.used {
            Ok(outcome)
        } else if self.is_broken && self.polled < self.posted {
            Err(Failure::Flushed)
        } else {
            return None;
        };
        self.polled += 1;
        Some(Completion::Receive { id: request.id, status })
    }

    /// Nothing more is executed.
    pub(super) fn fail(&mut self) {
        self.is_broken = true;
        self.ack_at = NEVER;
    }

    /// When there is something to do though nothing comes; no packet goes before `held_until`.
    pub(super) fn timer(&self, held_until: Timestamp) -> Timestamp {
        if self.has_answer() {
            held_until
        } else {
            self.ack_at.max(held_until)
        }
    }

    /// The wire number of the packet whose turn it is.
    #[cfg(test)]
    pub(super) const fn expected(&self) -> u32 {
        psn::wire(self.expected)
    }

    /// Whether something waits to be sent that was asked for.
    pub(super) fn has_answer(&self) -> bool {
        !self.jobs.is_empty() || self.answer.is_some()
    }

    /// Takes in a request.
    ///
    /// # Errors
    /// It is refused for good. The refusal still has to be sent.
    pub(super) fn on_request(
        &mut self,
        now: Timestamp,
        packet: &Packet<'_>,
        regions: &Regions,
        memory: &mut [u8],
        counters: &mut Counters,
    ) -> Result<(), NakCode> {
        let psn = psn::expand(packet.psn, self.expected);
        if psn < self.expected {
            counters.duplicate_request += 1;
            self.answer_again(psn, packet, regions);
            return Ok(());
        }
        if psn > self.expected {
            counters.out_of_seq_request += 1;
            if !self.is_nak_sent {
                self.is_nak_sent = true;
                self.answer = Some(Syndrome::Nak(NakCode::SequenceError));
            }
            return Ok(());
        }
        match self.execute(packet, regions, memory) {
            Ok(packets) => {
                self.expected += packets;
                self.is_nak_sent = false;
                if packet.opcode.shape().is_last {
                    self.msn = self.msn.wrapping_add(1);
                    counters.messages_executed += 1;
                }
                if packet.opcode == Opcode::ReadRequest {
                    // Its response acknowledges it, and all before.
                    (self.answer, self.ack_at) = (None, NEVER);
                } else {
                    self.acknowledge(now, packet.ack_request);
                }
                Ok(())
            }
            Err(Syndrome::Nak(code)) => {
                match code {
                    NakCode::RemoteAccessError => counters.resp_remote_access_errors += 1,
                    _ => counters.resp_invalid_request += 1,
                }
                self.answer = Some(Syndrome::Nak(code));
                Err(code)
            }
            Err(not_now) => {
                counters.send_rnr_err += 1;
                self.is_nak_sent = true;
                self.answer = Some(not_now);
                Ok(())
            }
        }
    }

    fn acknowledge(&mut self, now: Timestamp, is_asked: bool) {
        let is_owed = is_asked || self.answer == Some(Syndrome::Ack);
        self.answer = is_owed.then_some(Syndrome::Ack);
        if !is_owed && self.ack_at == NEVER {
            self.ack_at = now + self.config.ack_delay;
        }
    }

    /// A request of the past: its answer was lost, or is under way.
    fn answer_again(&mut self, psn: u64, packet: &Packet<'_>, regions: &Regions) {
        match packet.reth {
            Some(reth) if packet.opcode == Opcode::ReadRequest => {
                // Half of the places are for those whose turn it is.
                let packets = packets_of(length_of(reth), self.config.mtu);
                if self.jobs.len() < self.config.reads
                    && psn + packets <= self.expected
                    && let Ok(offset) = reach(reth, Want::Read, regions)
                {
                    self.jobs.push_back(Job::new(psn, offset, reth));
                }
            }
            // A refusal that waits to be sent acknowledges as well.
            _ if self.answer.is_none() => self.answer = Some(Syndrome::Ack),
            _ => {}
        }
    }

    /// Does what the packet asks, whole or not at all, and gives how many numbers it takes.
    fn execute(&mut self, packet: &Packet<'_>, regions: &Regions, memory: &mut [u8]) -> Result<u64, Syndrome> {
        let shape = packet.opcode.shape();
        if shape.is_first != (self.message == Message::None) {
            return Err(INVALID_REQUEST);
        }
        match shape.class {
            Class::Send => self.execute_send(packet, shape, memory),
            Class::Write => self.execute_write(packet, shape, regions, memory),
            Class::ReadRequest => self.execute_read(packet, regions),
            _ => Err(INVALID_REQUEST),
        }
    }

    fn execute_send(&mut self, packet: &Packet<'_>, shape: Shape, memory: &mut [u8]) -> Result<u64, Syndrome> {
        let received = match self.message {
            Message::None => 0,
            Message::Send { received } => received,
            Message::Write { .. } => return Err(INVALID_REQUEST),
        };
        self.check_length(packet, shape)?;
        let receive = self.next_receive()?;
        let length = received + packet.payload.len();
        if length > receive.length {
            return Err(INVALID_REQUEST);
        }
        memory[receive.offset + received..receive.offset + length].copy_from_slice(packet.payload);
        self.message = Message::Send { received: length };
        if shape.is_last {
            self.message = Message::None;
            self.use_receive(length, false, packet.immediate);
        }
        Ok(1)
    }

    fn execute_write(
        &mut self,
        packet: &Packet<'_>,
        shape: Shape,
        regions: &Regions,
        memory: &mut [u8],
    ) -> Result<u64, Syndrome> {
        let (offset, left, length) = match (self.message, packet.reth) {
            (Message::None, Some(reth)) => (reach(reth, Want::Write, regions)?, length_of(reth), length_of(reth)),
            (Message::Write { offset, left, length }, _) => (offset, left, length),
            _ => return Err(INVALID_REQUEST),
        };
        self.check_length(packet, shape)?;
        let here = packet.payload.len();
        if here > left || shape.is_last && here < left {
            return Err(INVALID_REQUEST);
        }
        if shape.has_immediate {
            self.next_receive()?;
        }
        memory[offset..offset + here].copy_from_slice(packet.payload);
        self.message = Message::Write {
            offset: offset + here,
            left: left - here,
            length,
        };
        if shape.is_last {
            self.message = Message::None;
        }
        if shape.has_immediate {
            self.use_receive(length, true, packet.immediate);
        }
        Ok(1)
    }

    fn execute_read(&mut self, packet: &Packet<'_>, regions: &Regions) -> Result<u64, Syndrome> {
        let reth = packet.reth.ok_or(INVALID_REQUEST)?;
        let offset = reach(reth, Want::Read, regions)?;
        let packets = packets_of(length_of(reth), self.config.mtu);
        if packets > READ_PACKETS_MAX || self.jobs.len() >= 2 * self.config.reads || !packet.payload.is_empty() {
            return Err(INVALID_REQUEST);
        }
        self.jobs.push_back(Job::new(self.expected, offset, reth));
        Ok(packets)
    }

    /// All packets of a message but its last are full, and the last of several is not empty.
    fn check_length(&self, packet: &Packet<'_>, shape: Shape) -> Result<(), Syndrome> {
        let length = packet.payload.len();
        let is_good = match (shape.is_first, shape.is_last) {
            (_, false) => length == self.config.mtu,
            (false, true) => (1..=self.config.mtu).contains(&length),
            (true, true) => length <= self.config.mtu,
        };
        is_good.then_some(()).ok_or(INVALID_REQUEST)
    }

    fn next_receive(&self) -> Result<ReceiveRequest, Syndrome> {
        if self.used == self.posted {
            return Err(Syndrome::RnrNak(self.config.rnr_timer));
        }
        Ok(self.receives[ring_place(self.used, self.receives.len())].request)
    }

    fn use_receive(&mut self, length: usize, is_write: bool, immediate: Option<u32>) {
        let index = ring_place(self.used, self.receives.len());
        self.receives[index].outcome = Received {
            length,
            is_write,
            immediate,
        };
        self.used += 1;
    }

    /// Writes the next answer, if one is due.
    pub(super) fn transmit(
        &mut self,
        now: Timestamp,
        destination: u32,
        memory: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        let mut packet = Packet {
            opcode: Opcode::Acknowledge,
            destination,
            psn: 0,
            ack_request: false,
            is_backward_congestion: false,
            reth: None,
            acknowledgement: None,
            immediate: None,
            payload: &[],
        };
        let acknowledgement = |syndrome| {
            Some(Acknowledgement {
                syndrome,
                msn: self.msn,
            })
        };
        if let Some(job) = self.jobs.front_mut() {
            let length = job.left.min(self.config.mtu);
            let is_last = length == job.left;
            packet.opcode = Opcode::read_response(job.is_first, is_last);
            packet.psn = psn::wire(job.psn);
            if job.is_first || is_last {
                packet.acknowledgement = acknowledgement(Syndrome::Ack);
            }
            packet.payload = &memory[job.offset..job.offset + length];
            *job = Job {
                psn: job.psn + 1,
                offset: job.offset + length,
                left: job.left - length,
                is_first: false,
            };
            if is_last {
                self.jobs.pop_front();
            }
            return Some(packet.encode(out));
        }
        let syndrome = match self.answer.take() {
            Some(syndrome) => syndrome,
            None if now >= self.ack_at => Syndrome::Ack,
            None => return None,
        };
        let psn = match syndrome {
            Syndrome::Ack => self.expected - 1,
            Syndrome::RnrNak(_) | Syndrome::Nak(_) => self.expected,
        };
        packet.psn = psn::wire(psn);
        packet.acknowledgement = acknowledgement(syndrome);
        // Either says that all before is executed.
        self.ack_at = NEVER;
        Some(packet.encode(out))
    }
}

impl Job {
    fn new(psn: u64, offset: usize, reth: Reth) -> Self {
        Self {
            psn,
            offset,
            left: length_of(reth),
            is_first: true,
        }
    }
}

/// Where in the arena a request goes. One of no bytes goes nowhere and needs no key.
fn reach(reth: Reth, want: Want, regions: &Regions) -> Result<usize, Syndrome> {
    let length = length_of(reth);
    if length == 0 {
        return Ok(0);
    }
    let reached = regions.check(reth.remote_key.get(), reth.address.get(), length, want);
    reached.ok_or(Syndrome::Nak(NakCode::RemoteAccessError))
}

const fn length_of(reth: Reth) -> usize {
    reth.length.get() as usize
}

/// Most packets that one response may have: a quarter of all sequence numbers.
const READ_PACKETS_MAX: u64 = 1 << 22;
const INVALID_REQUEST: Syndrome = Syndrome::Nak(NakCode::InvalidRequest);
