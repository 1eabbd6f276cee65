//! The queue pair of a reliable connection, and the queue in which its requests and receives are told to have ended.

use super::device::{Device, GidEntry};
use super::memory::ProtectionDomain;
use super::work::{COMPLETIONS, WORK_COMPLETIONS, WorkCompletion, opcode};
use super::{done, made, zeroed};
use rdma_mummy_sys as sys;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Where what has ended is told.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    queue: NonNull<sys::ibv_cq>,
    _device: Arc<Device>,
}

/// One end of a reliable connection.
#[derive(Debug)]
pub(crate) struct QueuePair {
    pair: NonNull<sys::ibv_qp>,
    inline_max: usize,
    _queue: Arc<CompletionQueue>,
    _domain: Arc<ProtectionDomain>,
}

/// How much a queue pair holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueuePairSize {
    /// Requests.
    pub(crate) sends: usize,
    /// Receives.
    pub(crate) receives: usize,
    /// Bytes of a request that the device should take along, instead of fetching them.
    pub(crate) inline: usize,
}

/// With whom a queue pair speaks, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Connection {
    pub(crate) gid: GidEntry,
    pub(crate) peer_gid: [u8; 16],
    pub(crate) peer_qpn: u32,
    /// First packet number of this end, and of the peer.
    pub(crate) send_psn: u32,
    pub(crate) receive_psn: u32,
    /// Payload of a packet, bytes.
    pub(crate) mtu: usize,
    /// Code point and congestion bits.
    pub(crate) traffic_class: u8,
    /// Priority in a VLAN's tag.
    pub(crate) service_level: u8,
    /// Timeout of an acknowledgement: 4.096 µs times two to this power.
    pub(crate) timeout: u8,
    /// RDMA READs under way.
    pub(crate) reads: u8,
    /// The peer may read.
    pub(crate) allows_reads: bool,
}

/// A request, of bytes under a local key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) id: u64,
    pub(crate) opcode: sys::ibv_wr_opcode::Type,
    pub(crate) address: u64,
    pub(crate) length: usize,
    pub(crate) local_key: u32,
    pub(crate) immediate: u32,
    /// In the peer's memory, for those that reach there.
    pub(crate) remote_address: u64,
    pub(crate) remote_key: u32,
    pub(crate) is_signaled: bool,
}

/// A receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub(crate) id: u64,
    pub(crate) address: u64,
    /// Bytes; none are needed for the immediate of an RDMA WRITE.
    pub(crate) length: usize,
    pub(crate) local_key: u32,
}

// SAFETY: libibverbs serves any thread, and nothing of it is bound to the one that made it.
unsafe impl std::marker::Send for CompletionQueue {}
// SAFETY: as above; the library's own locks guard what calls change.
unsafe impl Sync for CompletionQueue {}
// SAFETY: as above.
unsafe impl std::marker::Send for QueuePair {}

impl CompletionQueue {
    /// One with room for so many.
    pub(crate) fn new(device: &Arc<Device>, entries: usize) -> io::Result<Self> {
        let entries = libc::c_int::try_from(entries).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the device is open; nobody is woken by this queue.
        let queue =
            made(unsafe { sys::ibv_create_cq(device.context(), entries, ptr::null_mut(), ptr::null_mut(), 0) })?;
        Ok(Self {
            queue,
            _device: Arc::clone(device),
        })
    }

    /// Makes room for so many. What has ended and was not taken yet stays.
    pub(crate) fn resize(&self, entries: usize) -> io::Result<()> {
        let entries = libc::c_int::try_from(entries).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the queue is there; the library's own lock guards it.
        done(unsafe { sys::ibv_resize_cq(self.queue.as_ptr(), entries) })
    }

    /// Fills in what has ended, and gives how many.
    pub(crate) fn poll(&self, out: &mut [WorkCompletion; WORK_COMPLETIONS]) -> io::Result<usize> {
        // SAFETY: there is room for as many as are said.
        let count = unsafe { sys::ibv_poll_cq(self.queue.as_ptr(), COMPLETIONS, out.as_mut_ptr().cast()) };
        usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(count.abs()))
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: made by us, and its queue pairs are gone.
        unsafe { sys::ibv_destroy_cq(self.queue.as_ptr()) };
    }
}

impl QueuePair {
    /// One that is not connected yet. It takes receives once it is.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        queue: &Arc<CompletionQueue>,
        size: QueuePairSize,
    ) -> io::Result<Self> {
        let narrow = |count: usize| u32::try_from(count).map_err(|_| io::ErrorKind::InvalidInput);
        let mut attributes = sys::ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: queue.queue.as_ptr(),
            recv_cq: queue.queue.as_ptr(),
            srq: ptr::null_mut(),
            cap: sys::ibv_qp_cap {
                max_send_wr: narrow(size.sends)?,
                max_recv_wr: narrow(size.receives)?,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: narrow(size.inline)?,
            },
            qp_type: sys::ibv_qp_type::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: domain and queue are there, and outlive the pair.
        let pair = made(unsafe { sys::ibv_create_qp(domain.domain(), &raw mut attributes) })?;
        Ok(Self {
            pair,
            inline_max: attributes.cap.max_inline_data as usize,
            _queue: Arc::clone(queue),
            _domain: Arc::clone(domain),
        })
    }

    /// Its number, 24 bits.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: made, and not destroyed.
        unsafe { self.pair.as_ref() }.qp_num
    }

    /// Connects it: from then on it receives and sends.
    pub(crate) fn connect(&mut self, to: &Connection) -> io::Result<()> {
        use sys::ibv_qp_attr_mask as mask;
        let Connection { gid, .. } = *to;
        let flag = |is_set: bool, flag: sys::ibv_access_flags| if is_set { flag.0 } else { 0 };
        // SAFETY: numbers.
        let mut attributes: sys::ibv_qp_attr = unsafe { zeroed() };
        attributes.qp_state = sys::ibv_qp_state::IBV_QPS_INIT;
        attributes.port_num = gid.port;
        attributes.qp_access_flags = sys::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0
            | flag(to.allows_reads, sys::ibv_access_flags::IBV_ACCESS_REMOTE_READ);
        let init = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT | mask::IBV_QP_ACCESS_FLAGS;
        self.modify(&mut attributes, init)?;

        attributes.qp_state = sys::ibv_qp_state::IBV_QPS_RTR;
        attributes.path_mtu = mtu_code(to.mtu);
        attributes.dest_qp_num = to.peer_qpn;
        attributes.rq_psn = to.receive_psn;
        attributes.max_dest_rd_atomic = to.reads;
        attributes.min_rnr_timer = RNR_TIMER;
        attributes.ah_attr.is_global = 1;
        attributes.ah_attr.port_num = gid.port;
        attributes.ah_attr.sl = to.service_level;
        attributes.ah_attr.grh = sys::ibv_global_route {
            dgid: sys::ibv_gid { raw: to.peer_gid },
            flow_label: 0,
            sgid_index: gid.index,
            hop_limit: HOP_LIMIT,
            traffic_class: to.traffic_class,
        };
        let ready_to_receive = mask::IBV_QP_STATE
            | mask::IBV_QP_AV
            | mask::IBV_QP_PATH_MTU
            | mask::IBV_QP_DEST_QPN
            | mask::IBV_QP_RQ_PSN
            | mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | mask::IBV_QP_MIN_RNR_TIMER;
        self.modify(&mut attributes, ready_to_receive)?;

        attributes.qp_state = sys::ibv_qp_state::IBV_QPS_RTS;
        attributes.sq_psn = to.send_psn;
        attributes.timeout = to.timeout;
        attributes.retry_cnt = RETRIES_MAX;
        attributes.rnr_retry = RNR_RETRY_FOREVER;
        attributes.max_rd_atomic = to.reads;
        let ready_to_send = mask::IBV_QP_STATE
            | mask::IBV_QP_TIMEOUT
            | mask::IBV_QP_RETRY_CNT
            | mask::IBV_QP_RNR_RETRY
            | mask::IBV_QP_SQ_PSN
            | mask::IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify(&mut attributes, ready_to_send)
    }

    fn modify(&mut self, attributes: &mut sys::ibv_qp_attr, mask: sys::ibv_qp_attr_mask) -> io::Result<()> {
        // SAFETY: the pair is there, and the attributes outlive the call.
        done(unsafe { sys::ibv_modify_qp(self.pair.as_ptr(), attributes, mask.0.cast_signed()) })
    }

    /// Posts a request.
    ///
    /// # Safety
    /// Its bytes lie in a region of its key, and stay there until it has ended.
    pub(crate) unsafe fn post_send(&mut self, send: &Send) -> io::Result<()> {
        use sys::ibv_send_flags as flags;
        let mut piece = piece(send.address, send.length, send.local_key);
        // SAFETY: numbers and pointers.
        let mut request: sys::ibv_send_wr = unsafe { zeroed() };
        request.wr_id = send.id;
        request.sg_list = &raw mut piece;
        request.num_sge = 1;
        request.opcode = send.opcode;
        request.imm_data_invalidated_rkey_union.imm_data = send.immediate.to_be();
        request.wr.rdma = sys::rdma_t {
            remote_addr: send.remote_address,
            rkey: send.remote_key,
        };
        if send.is_signaled {
            request.send_flags |= flags::IBV_SEND_SIGNALED.0;
        }
        if send.length <= self.inline_max && send.opcode != opcode::READ {
            request.send_flags |= flags::IBV_SEND_INLINE.0;
        }
        let mut bad = ptr::null_mut();
        // SAFETY: the request and its one piece outlive the call; its bytes are as the caller says.
        done(unsafe { sys::ibv_post_send(self.pair.as_ptr(), &raw mut request, &raw mut bad) })
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// Its bytes lie in a region of its key, and stay there until it has ended.
    pub(crate) unsafe fn post_receive(&mut self, receive: &Receive) -> io::Result<()> {
        let mut piece = piece(receive.address, receive.length, receive.local_key);
        let mut request = sys::ibv_recv_wr {
            wr_id: receive.id,
            next: ptr::null_mut(),
            sg_list: &raw mut piece,
            num_sge: libc::c_int::from(receive.length > 0),
        };
        let mut bad = ptr::null_mut();
        // SAFETY: as above.
        done(unsafe { sys::ibv_post_recv(self.pair.as_ptr(), &raw mut request, &raw mut bad) })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: made by us; after this the device touches none of the memory that was posted.
        unsafe { sys::ibv_destroy_qp(self.pair.as_ptr()) };
    }
}

#[allow(clippy::cast_possible_truncation, reason = "no message is that long")]
const fn piece(address: u64, length: usize, key: u32) -> sys::ibv_sge {
    sys::ibv_sge {
        addr: address,
        length: length as u32,
        lkey: key,
    }
}

/// `enum ibv_mtu`: 1 for 256, 5 for 4096.
const fn mtu_code(bytes: usize) -> sys::ibv_mtu::Type {
    bytes.ilog2().saturating_sub(7)
}

/// Retransmissions without an answer. The field's largest value, 7, means without end to rxe.
pub(crate) const RETRIES_MAX: u8 = 6;
/// A peer without a receive is asked again and again: it is in the window, and posts one before long.
const RNR_RETRY_FOREVER: u8 = 7;
/// What a peer that finds no receive here waits: 10 µs.
const RNR_TIMER: u8 = 1;
const HOP_LIMIT: u8 = 64;
