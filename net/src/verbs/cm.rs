//! Connections as the kernel's connection manager makes them (rdma_cm): both ends learn each other's queue pair, first packet
//! number, and a few bytes more. librdmacm is opened when the program first asks for it.
//!
//! Nothing waits: a channel's descriptor is asked before an event is taken from it. Queue pairs are the caller's own.

use super::{done, made, zeroed};
use rdma_mummy_sys as sys;
use socket2::SockAddr;
use std::ffi::CStr;
use std::net::SocketAddr;
use std::ptr::{self, NonNull};
use std::{fmt, io};

/// Where others connect to.
#[derive(Debug)]
pub(crate) struct CmListener(CmId);

/// A connection, or the way to one.
#[derive(Debug)]
pub(crate) struct CmConnection(CmId);

/// What a peer gives with its queue pair. What is shorter has zeros behind it.
pub(crate) type PrivateData = [u8; PRIVATE_DATA];

/// Bytes that a request takes: what the manager of a connection leaves of 92.
pub(crate) const PRIVATE_DATA: usize = 56;

/// What happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CmEvent {
    /// The way to the peer is known: [`CmConnection::connect`].
    Routed,
    /// The peer has a queue pair for this one: [`CmConnection::establish`].
    Answered(PrivateData),
    /// The peer does not want it.
    Rejected(PrivateData),
    /// The other end has established it.
    Established,
    /// Nobody is there, or it cannot be reached.
    Unreachable,
    /// The other end is gone.
    Disconnected,
    /// The device is gone.
    DeviceGone,
}

/// Of a queue pair, and of its peer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CmNumbers {
    pub(crate) send_psn: u32,
    pub(crate) receive_psn: u32,
    pub(crate) peer_qpn: u32,
}

/// An identifier of the manager, with a channel of its own that tells what happens to it.
struct CmId {
    /// Before the channel, so that it goes before it.
    id: Id,
    channel: Channel,
}

struct Id(NonNull<sys::rdma_cm_id>);

struct Channel(NonNull<sys::rdma_event_channel>);

/// What a channel tells.
enum Told {
    Event(CmEvent),
    /// Somebody connects.
    Request(Id, PrivateData),
    /// Something that needs no answer, or was answered.
    Nothing,
}

// SAFETY: librdmacm serves any thread, and nothing of it is bound to the one that made it.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Send for Channel {}

/// Has librdmacm let go of devices that are gone: it keeps open what it has found once, and they may be waiting for that.
pub(crate) fn forget_gone_devices() {
    // SAFETY: no count is wanted.
    let list = unsafe { sys::rdma_get_devices(ptr::null_mut()) };
    if !list.is_null() {
        // SAFETY: it came from there.
        unsafe { sys::rdma_free_devices(list) };
    }
}

impl CmListener {
    /// Listens at an address of a device.
    pub(crate) fn bind(local: SocketAddr) -> io::Result<Self> {
        let id = CmId::new()?;
        let local = SockAddr::from(local);
        // SAFETY: the identifier is there, the address outlives the call and is not changed.
        done_or_errno(unsafe { sys::rdma_bind_addr(id.raw(), local.as_ptr().cast_mut().cast()) })?;
        // SAFETY: bound.
        done_or_errno(unsafe { sys::rdma_listen(id.raw(), BACKLOG) })?;
        Ok(Self(id))
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.0.addresses().0
    }

    /// The next who connects, with what it gives.
    pub(crate) fn accept(&self) -> io::Result<Option<(CmConnection, PrivateData)>> {
        loop {
            match self.0.channel.next()? {
                None => return Ok(None),
                Some(Told::Request(id, data)) => {
                    let channel = Channel::new()?;
                    // SAFETY: both are there, and no event of the identifier is held.
                    done_or_errno(unsafe { sys::rdma_migrate_id(id.0.as_ptr(), channel.0.as_ptr()) })?;
                    return Ok(Some((CmConnection(CmId { id, channel }), data)));
                }
                Some(Told::Event(CmEvent::DeviceGone)) => return Err(io::ErrorKind::NotFound.into()),
                Some(_) => {}
            }
        }
    }
}

impl CmConnection {
    /// Begins to look for the way from an address of a device to a peer.
    pub(crate) fn resolve(local: SocketAddr, peer: SocketAddr) -> io::Result<Self> {
        let id = CmId::new()?;
        let (local, peer) = (SockAddr::from(local), SockAddr::from(peer));
        let [from, to] = [&local, &peer].map(|address| address.as_ptr().cast_mut().cast());
        // SAFETY: the identifier is there, the addresses outlive the call and are not changed.
        done_or_errno(unsafe { sys::rdma_resolve_addr(id.raw(), from, to, RESOLVE_WITHIN_MS) })?;
        Ok(Self(id))
    }

    /// What happened since it was asked last.
    pub(crate) fn poll(&self) -> io::Result<Option<CmEvent>> {
        loop {
            match self.0.channel.next()? {
                None => return Ok(None),
                Some(Told::Event(event)) => return Ok(Some(event)),
                // Nobody connects to a connection.
                Some(_) => {}
            }
        }
    }

    /// Asks the peer for a queue pair that speaks with this one.
    pub(crate) fn connect(&mut self, qpn: u32, data: &[u8]) -> io::Result<()> {
        let mut parameters = parameters(qpn, data);
        // SAFETY: the way is known; parameters and data outlive the call.
        done_or_errno(unsafe { sys::rdma_connect(self.0.raw(), &raw mut parameters) })
    }

    /// Tells the peer that this end is ready for what it sends.
    pub(crate) fn establish(&mut self) -> io::Result<()> {
        // SAFETY: it has an answer, and no queue pair that librdmacm knows of.
        done_or_errno(unsafe { sys::rdma_establish(self.0.raw()) })
    }

    /// Answers who connected: with this queue pair, which receives.
    pub(crate) fn accept(&mut self, qpn: u32, data: &[u8]) -> io::Result<()> {
        let mut parameters = parameters(qpn, data);
        // SAFETY: somebody connects; parameters and data outlive the call.
        done_or_errno(unsafe { sys::rdma_accept(self.0.raw(), &raw mut parameters) })
    }

    /// Does not want who connected.
    pub(crate) fn reject(&mut self, data: &[u8]) -> io::Result<()> {
        let length = u8::try_from(data.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: somebody connects; the data outlive the call.
        done_or_errno(unsafe { sys::rdma_reject(self.0.raw(), data.as_ptr().cast(), length) })
    }

    /// Of the queue pairs, once one end has asked or the other has answered.
    pub(crate) fn numbers(&self) -> io::Result<CmNumbers> {
        let ask = |state| -> io::Result<sys::ibv_qp_attr> {
            // SAFETY: numbers.
            let mut attributes: sys::ibv_qp_attr = unsafe { zeroed() };
            attributes.qp_state = state;
            let mut mask = 0;
            // SAFETY: attributes and mask outlive the call.
            done_or_errno(unsafe { sys::rdma_init_qp_attr(self.0.raw(), &raw mut attributes, &raw mut mask) })?;
            Ok(attributes)
        };
        let receives = ask(sys::ibv_qp_state::IBV_QPS_RTR)?;
        Ok(CmNumbers {
            send_psn: ask(sys::ibv_qp_state::IBV_QPS_RTS)?.sq_psn,
            receive_psn: receives.rq_psn,
            peer_qpn: receives.dest_qp_num,
        })
    }

    /// The name of the device that it is on.
    pub(crate) fn device(&self) -> Option<String> {
        // SAFETY: the identifier is there; its device is null, or open as long as it is.
        let context = NonNull::new(unsafe { (*self.0.raw()).verbs })?;
        // SAFETY: a device has a name that ends with 0.
        let name = unsafe { CStr::from_ptr(sys::ibv_get_device_name(context.as_ref().device)) };
        Some(name.to_string_lossy().into_owned())
    }

    /// The address of this end, and of the other.
    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        self.0.addresses()
    }
}

impl CmId {
    fn new() -> io::Result<Self> {
        let channel = Channel::new()?;
        let mut id = ptr::null_mut();
        let space = sys::rdma_port_space::RDMA_PS_TCP;
        // SAFETY: the channel is there, and outlives the identifier.
        done_or_errno(unsafe { sys::rdma_create_id(channel.0.as_ptr(), &raw mut id, ptr::null_mut(), space) })?;
        Ok(Self {
            id: Id(made(id)?),
            channel,
        })
    }

    const fn raw(&self) -> *mut sys::rdma_cm_id {
        self.id.0.as_ptr()
    }

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        // SAFETY: the identifier is there; both are addresses, or zeros, in room for any.
        unsafe {
            let addresses = &(*self.raw()).route.addr;
            (
                address(&addresses.src_addr_union.src_storage),
                address(&addresses.dst_addr_union.dst_storage),
            )
        }
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: made by us, every event of it is acknowledged, and its channel is still there.
        unsafe { sys::rdma_destroy_id(self.0.as_ptr()) };
    }
}

impl Channel {
    fn new() -> io::Result<Self> {
        // SAFETY: it needs nothing.
        Ok(Self(made(unsafe { sys::rdma_create_event_channel() })?))
    }

    /// The next that it tells.
    fn next(&self) -> io::Result<Option<Told>> {
        let mut ready = libc::pollfd {
            // SAFETY: the channel is there.
            fd: unsafe { self.0.as_ref() }.fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open.
        match unsafe { libc::poll(&raw mut ready, 1, 0) } {
            0 => return Ok(None),
            1 => {}
            _ => return Err(io::Error::last_os_error()),
        }
        let mut event = ptr::null_mut();
        // SAFETY: the channel is there, and has one.
        done_or_errno(unsafe { sys::rdma_get_cm_event(self.0.as_ptr(), &raw mut event) })?;
        // SAFETY: it was got just now.
        let told = unsafe { told(&*event) };
        // SAFETY: as above; nothing of it is held.
        unsafe { sys::rdma_ack_cm_event(event) };
        told.map(Some)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: made by us, and its identifier is gone.
        unsafe { sys::rdma_destroy_event_channel(self.0.as_ptr()) };
    }
}

impl fmt::Debug for CmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CmId").field(&self.addresses()).finish()
    }
}

/// What an event says.
///
/// # Safety
/// It is one that is not acknowledged yet.
unsafe fn told(event: &sys::rdma_cm_event) -> io::Result<Told> {
    use sys::rdma_cm_event_type as kind;
    // SAFETY: numbers, whatever the event is of; the pointer is looked at where the kind says that it is one.
    let data = || unsafe { private_data(&event.param.conn) };
    Ok(Told::Event(match event.event {
        kind::RDMA_CM_EVENT_ADDR_RESOLVED => {
            // SAFETY: the identifier is that of whoever asks.
            done_or_errno(unsafe { sys::rdma_resolve_route(event.id, RESOLVE_WITHIN_MS) })?;
            return Ok(Told::Nothing);
        }
        kind::RDMA_CM_EVENT_ROUTE_RESOLVED => CmEvent::Routed,
        kind::RDMA_CM_EVENT_CONNECT_REQUEST => return Ok(Told::Request(Id(made(event.id)?), data())),
        kind::RDMA_CM_EVENT_CONNECT_RESPONSE => CmEvent::Answered(data()),
        kind::RDMA_CM_EVENT_REJECTED => CmEvent::Rejected(data()),
        kind::RDMA_CM_EVENT_ESTABLISHED => CmEvent::Established,
        kind::RDMA_CM_EVENT_DISCONNECTED => CmEvent::Disconnected,
        kind::RDMA_CM_EVENT_DEVICE_REMOVAL => CmEvent::DeviceGone,
        kind::RDMA_CM_EVENT_ADDR_ERROR
        | kind::RDMA_CM_EVENT_ROUTE_ERROR
        | kind::RDMA_CM_EVENT_CONNECT_ERROR
        | kind::RDMA_CM_EVENT_UNREACHABLE => CmEvent::Unreachable,
        _ => return Ok(Told::Nothing),
    }))
}

/// # Safety
/// They are those of an event that is not acknowledged yet.
unsafe fn private_data(parameters: &sys::rdma_conn_param) -> PrivateData {
    let mut data = [0; PRIVATE_DATA];
    let length = usize::from(parameters.private_data_len).min(PRIVATE_DATA);
    if !parameters.private_data.is_null() {
        // SAFETY: so many bytes are there.
        unsafe { ptr::copy_nonoverlapping(parameters.private_data.cast(), data.as_mut_ptr(), length) };
    }
    data
}

fn parameters(qpn: u32, data: &[u8]) -> sys::rdma_conn_param {
    assert!(data.len() <= PRIVATE_DATA, "more than a request takes");
    sys::rdma_conn_param {
        private_data: data.as_ptr().cast(),
        private_data_len: data.len().to_le_bytes()[0],
        // What follows is set with the queue pair itself.
        responder_resources: 1,
        initiator_depth: 1,
        flow_control: 0,
        retry_count: super::RETRIES_MAX,
        rnr_retry_count: 7,
        srq: 0,
        qp_num: qpn,
    }
}

fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the storage is one of the system's, and as long.
    let ((), address) = unsafe {
        SockAddr::try_init(|to, length| {
            ptr::copy_nonoverlapping(ptr::from_ref(storage).cast::<u8>(), to.cast(), size_of_val(storage));
            *length = libc::socklen_t::try_from(size_of_val(storage)).unwrap_or(0);
            Ok(())
        })
    }
    .ok()?;
    address.as_socket()
}

/// What a call of librdmacm gave that returns -1 and `errno`.
fn done_or_errno(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        other => done(other),
    }
}

/// Connections that wait for an answer.
const BACKLOG: libc::c_int = 4;
/// How long the manager looks for a way, milliseconds.
const RESOLVE_WITHIN_MS: libc::c_int = 1_000;
