//! One queue of an interface: its socket, its frames, and the ends of conversations that share them.
//!
//! A queue is of one thread. Its ends hold it together, and whoever of them looks for datagrams sorts what is there for all:
//! what is another's waits in that one's inbox, in the frame that it came in.

use super::attachment::{Attachment, QUEUES_MAX};
use super::config::{Mode, XdpConfig};
use super::frame::{self, HEADER_LENGTH, Header, OVERHEAD_IN_MTU, Origin, Reject};
use super::interface::Interface;
use super::memory::{FRAME_LENGTH, Frames};
use super::program::FlowKey;
use super::socket::{Copying, XdpSocket};
use super::{RECEIVES_MAX, XdpCounters};
use crate::bpf::Hook;
use crate::error::SetupError;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// One queue of an interface.
#[derive(Debug)]
pub(super) struct Queue {
    // Before the frames, so that the kernel is done with them first.
    socket: XdpSocket,
    frames: Frames,
    /// Frames that may be written.
    free: Vec<u64>,
    /// Frames put into the ring since the kernel last took all.
    unsent: u32,
    inboxes: Vec<Option<Inbox>>,
    attachment: Arc<Attachment>,
    interface: Interface,
    config: XdpConfig,
    copying: Copying,
}

/// What waits for one end.
#[derive(Debug)]
struct Inbox {
    local: SocketAddrV4,
    waiting: VecDeque<Waiting>,
}

/// A datagram in its frame.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Of its payload among the frames.
    offset: u64,
    length: usize,
    origin: Origin,
}

/// Ends of one queue: the links of a shard.
const INBOXES_MAX: usize = 64;

/// Of the frames of a queue, so many may wait for one end before it loses some: that it does not look for its datagrams must
/// not take the frames from the others.
const FRAMES_AN_INBOX: u32 = 8;

type Key = (u64, u32, u16);

thread_local! {
    /// The queues of this thread. It holds none alive: that is for their ends.
    static QUEUES: RefCell<Vec<(Key, Weak<RefCell<Queue>>)>> = const { RefCell::new(Vec::new()) };
}

impl Queue {
    /// Bytes that the inbox of one end takes.
    pub(super) const fn inbox_memory(frames: u32) -> usize {
        (frames / FRAMES_AN_INBOX) as usize * size_of::<Waiting>()
    }

    /// The queue that the config names; opens it for the first end of this thread that wants it.
    ///
    /// # Errors
    /// The kernel refuses something, or another end has the queue with other settings.
    pub(super) fn of(config: &XdpConfig, interface: Interface) -> Result<Rc<RefCell<Self>>, SetupError> {
        let key = (interface.namespace, interface.index, config.queue);
        QUEUES.with_borrow_mut(|queues| {
            queues.retain(|(_, queue)| queue.strong_count() > 0);
            let of_key = queues.iter().find(|(other, _)| *other == key);
            if let Some(queue) = of_key.and_then(|(_, queue)| queue.upgrade()) {
                queue.borrow().check_shared(config)?;
                return Ok(queue);
            }
            let queue = Rc::new(RefCell::new(Self::open(config, interface)?));
            queues.push((key, Rc::downgrade(&queue)));
            Ok(queue)
        })
    }

    fn open(config: &XdpConfig, interface: Interface) -> Result<Self, SetupError> {
        let error = |what: &str, source: io::Error, advice| {
            let doing = format!("{what} queue {} of {}", config.queue, config.interface);
            SetupError::new(doing, source, advice)
        };
        if config.queue >= QUEUES_MAX {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(error("opening", source, "queues are numbered from 0 to 255"));
        }
        let frames = Frames::new(config.frames, config.huge_pages).map_err(|source| {
            let advice =
                "reserve huge pages (`sysctl vm.nr_hugepages`), leave huge_pages out, or configure fewer frames";
            error("mapping the frames of", source, advice)
        })?;
        let attachment = Attachment::of(&config.interface, &interface)?;
        let (socket, copying) = bind(config, &interface, &frames, attachment.hook).map_err(|source| {
            let advice = bind_advice(&source);
            error("binding AF_XDP to", source, advice)
        })?;
        let mut queue = Self {
            socket,
            frames,
            free: (config.frames / 2..config.frames).map(offset_of).collect(),
            unsent: 0,
            inboxes: Vec::new(),
            attachment,
            interface,
            config: *config,
            copying,
        };
        for frame in 0..config.frames / 2 {
            queue.give_back(offset_of(frame));
        }
        let served = queue.attachment.serve(config.queue, queue.socket.as_fd());
        served.map_err(|source| error("redirecting to", source, "check what the kernel log says"))?;
        Ok(queue)
    }

    fn check_shared(&self, config: &XdpConfig) -> Result<(), SetupError> {
        let of_queue = |config: &XdpConfig| (config.mode, config.frames, config.huge_pages);
        if of_queue(&self.config) == of_queue(config) {
            return Ok(());
        }
        let doing = format!("sharing queue {} of {}", config.queue, config.interface);
        let source = io::ErrorKind::InvalidInput.into();
        let advice = "give links of one queue the same mode, frames and huge_pages";
        Err(SetupError::new(doing, source, advice))
    }

    /// Opens an inbox: from now on datagrams to this address come here and no longer to the kernel.
    ///
    /// # Errors
    /// The kernel refuses, or there are as many as there may be.
    pub(super) fn open_inbox(&mut self, local: SocketAddrV4) -> Result<usize, SetupError> {
        let error = |source, advice| {
            let doing = format!(
                "receiving {local} on queue {} of {}",
                self.config.queue, self.config.interface
            );
            SetupError::new(doing, source, advice)
        };
        let vacant = self.inboxes.iter().position(Option::is_none);
        let place = vacant.unwrap_or(self.inboxes.len());
        if place == INBOXES_MAX {
            let source = io::ErrorKind::QuotaExceeded.into();
            return Err(error(source, "a queue has at most 64 links: put some on another queue"));
        }
        let redirected = self.attachment.redirect(self.flow(local));
        redirected.map_err(|source| error(source, "check what the kernel log says"))?;
        let inbox = Inbox {
            local,
            waiting: VecDeque::with_capacity((self.config.frames / FRAMES_AN_INBOX) as usize),
        };
        if place == self.inboxes.len() {
            self.inboxes.push(None);
        }
        self.inboxes[place] = Some(inbox);
        Ok(place)
    }

    /// Closes an inbox: datagrams to its address are the kernel's again.
    pub(super) fn close_inbox(&mut self, place: usize) {
        if let Some(inbox) = self.inboxes[place].take() {
            self.attachment.release(self.flow(inbox.local));
            for waiting in inbox.waiting {
                self.give_back(waiting.offset);
            }
        }
    }

    /// Puts a datagram into the ring of frames to be sent. `false`: no frame is free.
    ///
    /// # Errors
    /// It is longer than the interface takes.
    pub(super) fn send(&mut self, header: &Header, payload: &[u8]) -> io::Result<bool> {
        if OVERHEAD_IN_MTU + payload.len() > self.interface.mtu {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Those sent last are written next: they are still in the cache.
        while let Some(frame) = self.socket.completion.pop() {
            self.free.push(frame);
        }
        let Some(frame) = self.free.pop() else {
            return Ok(false);
        };
        let Some(length) = header.write(payload, self.frames.empty(frame)) else {
            self.free.push(frame);
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let descriptor = libc::xdp_desc {
            addr: frame,
            len: u32::from(length),
            options: 0,
        };
        assert!(
            self.socket.transmit.push(descriptor),
            "a slot for each frame that sends"
        );
        self.unsent += 1;
        Ok(true)
    }

    /// Lets the kernel send what was put into the ring. What it does not take now is for the next call.
    ///
    /// # Errors
    /// The socket is unusable.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.unsent == 0 {
            return Ok(());
        }
        self.socket.transmit.publish();
        for _ in 0..=self.unsent / FRAMES_A_KICK {
            if !self.socket.transmit.wants_wakeup() || self.socket.kick_transmit()? {
                self.unsent = 0;
                break;
            }
        }
        Ok(())
    }

    /// Receives the next datagram of an inbox: its length and origin. No system call, unless the driver asks for one.
    ///
    /// # Errors
    /// The socket is unusable.
    pub(super) fn recv(
        &mut self,
        inbox: usize,
        buffer: &mut [u8],
        counters: &mut XdpCounters,
    ) -> io::Result<Option<(usize, Origin)>> {
        let before = self.inboxes[inbox].as_mut().and_then(|inbox| inbox.waiting.pop_front());
        if let Some(waiting) = before {
            return Ok(Some(self.take(waiting, buffer)));
        }
        for _ in 0..RECEIVES_MAX {
            let Some(descriptor) = self.socket.receive.pop() else {
                if self.socket.fill.wants_wakeup() {
                    self.socket.kick_fill()?;
                }
                return Ok(None);
            };
            match self.sort(descriptor, counters) {
                Some((owner, waiting)) if owner == inbox => return Ok(Some(self.take(waiting, buffer))),
                Some((owner, waiting)) => self.deliver(owner, waiting, counters),
                None => self.give_back(descriptor.addr),
            }
        }
        Ok(None)
    }

    /// Finds whose datagram is in a frame; `None` when it is nobody's.
    fn sort(&self, descriptor: libc::xdp_desc, counters: &mut XdpCounters) -> Option<(usize, Waiting)> {
        let frame = self.frames.received(descriptor.addr, descriptor.len as usize);
        let parsed = match frame::parse(frame, self.interface.checksums()) {
            Ok(parsed) => parsed,
            Err(reject) => {
                *match reject {
                    Reject::Unsupported => &mut counters.unsupported,
                    Reject::Length => &mut counters.malformed,
                    Reject::Checksum => &mut counters.bad_checksum,
                } += 1;
                return None;
            }
        };
        let to = SocketAddrV4::new(parsed.to.address, parsed.to.port);
        let is_to = |inbox: &Option<Inbox>| inbox.as_ref().is_some_and(|inbox| inbox.local == to);
        let Some(owner) = self.inboxes.iter().position(is_to) else {
            counters.unknown += 1;
            return None;
        };
        let waiting = Waiting {
            offset: descriptor.addr + HEADER_LENGTH as u64,
            length: parsed.payload.len(),
            origin: parsed.origin,
        };
        Some((owner, waiting))
    }

    fn deliver(&mut self, owner: usize, waiting: Waiting, counters: &mut XdpCounters) {
        match &mut self.inboxes[owner] {
            Some(inbox) if inbox.waiting.len() < inbox.waiting.capacity() => inbox.waiting.push_back(waiting),
            _ => {
                counters.overflowed += 1;
                self.give_back(waiting.offset);
            }
        }
    }

    /// Copies a datagram out of its frame, as much of it as fits.
    fn take(&mut self, waiting: Waiting, buffer: &mut [u8]) -> (usize, Origin) {
        let payload = self.frames.received(waiting.offset, waiting.length);
        let length = payload.len().min(buffer.len());
        buffer[..length].copy_from_slice(&payload[..length]);
        self.give_back(waiting.offset);
        (length, waiting.origin)
    }

    /// Lets the kernel receive into the frame that this offset lies in.
    fn give_back(&mut self, offset: u64) {
        let frame = offset & !(u64::from(FRAME_LENGTH) - 1);
        assert!(self.socket.fill.push(frame), "a slot for each frame that receives");
        self.socket.fill.publish();
    }

    fn flow(&self, local: SocketAddrV4) -> FlowKey {
        FlowKey {
            address: *local.ip(),
            port: local.port(),
            queue: self.config.queue,
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hook = match self.attachment.hook {
            Hook::Native => "native",
            Hook::Generic => "generic",
        };
        let copying = match self.copying {
            Copying::Zero => "zero copy",
            Copying::Kernel => "copy",
        };
        let (interface, queue, frames) = (self.config.interface, self.config.queue, self.config.frames);
        write!(
            f,
            "AF_XDP on {interface} queue {queue}, {hook} hook, {copying}, {frames} frames"
        )
    }
}

/// Binds a socket in the best way that the mode allows and the driver offers.
fn bind(config: &XdpConfig, interface: &Interface, frames: &Frames, hook: Hook) -> io::Result<(XdpSocket, Copying)> {
    let start = Instant::now();
    let open = |copying| {
        loop {
            match XdpSocket::open(frames, config.frames, interface.index, config.queue, copying) {
                Ok(socket) => return Ok((socket, copying)),
                // The kernel takes its time to let go of the queue of a process that was killed.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < QUEUE_WAIT => {
                    thread::sleep(QUEUE_POLL);
                }
                Err(error) => return Err(error),
            }
        }
    };
    match (config.mode, hook) {
        (Mode::ZeroCopy, _) => open(Copying::Zero),
        // Only drivers have it.
        (Mode::Copy, _) | (Mode::Auto, Hook::Generic) => open(Copying::Kernel),
        (Mode::Auto, Hook::Native) => open(Copying::Zero).or_else(|error| {
            let (name, queue) = (config.interface, config.queue);
            tracing::info!("AF_XDP on {name} queue {queue}: no zero copy ({error}), the kernel copies");
            open(Copying::Kernel)
        }),
    }
}

fn bind_advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run it as root, or grant CAP_NET_RAW",
        Some(libc::EBUSY) => "another thread or process has this queue: give each shard its own",
        Some(libc::EINVAL) => "check that the interface has this queue (`ls /sys/class/net/INTERFACE/queues`)",
        Some(libc::ENETDOWN) => "bring the interface up (`ip link set INTERFACE up`)",
        Some(libc::EOPNOTSUPP) => "this driver has no zero copy: mode = \"auto\" or \"copy\"",
        Some(libc::EAFNOSUPPORT) => "this kernel has no AF_XDP: use carrier = \"udp\"",
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "raise the limit of locked memory (`ulimit -l`) or configure fewer frames"
        }
        _ => "check what the kernel log says",
    }
}

fn offset_of(frame: u32) -> u64 {
    u64::from(frame) * u64::from(FRAME_LENGTH)
}

/// How long a queue that is taken may take to become free, at start-up.
const QUEUE_WAIT: Duration = Duration::from_secs(1);
const QUEUE_POLL: Duration = Duration::from_millis(1);
/// What the kernel sends in one call in copy mode.
const FRAMES_A_KICK: u32 = 32;
