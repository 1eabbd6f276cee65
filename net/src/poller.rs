//! Readiness of many sockets by one epoll.
//!
//! With a timeout of zero it is a look, not a wait: a spinning thread asks it once a turn and receives on what is ready.
//! With a timeout it is how a thread that may sleep backs off.

use crate::error::{SetupError, socket_advice};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use types::Duration;

/// Watches sockets, level-triggered: what is not drained is reported again. A socket that is closed leaves by itself.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    events: Box<[libc::epoll_event]>,
}

/// What to be told of a socket. Errors and hang-ups are always told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// Something can be received or accepted.
    pub readable: bool,
    /// Something can be sent.
    pub writable: bool,
}

/// One socket that is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The token it was added with.
    pub token: u64,
    /// A receive gives bytes, the peer's close, or the error.
    pub readable: bool,
    /// A send takes bytes.
    pub writable: bool,
}

impl Interest {
    /// Only what comes in.
    pub const READ: Self = Self {
        readable: true,
        writable: false,
    };
    /// Both: while bytes wait to be sent.
    pub const READ_WRITE: Self = Self {
        readable: true,
        writable: true,
    };

    fn mask(self) -> u32 {
        let read = if self.readable {
            libc::EPOLLIN | libc::EPOLLRDHUP
        } else {
            0
        };
        let write = if self.writable { libc::EPOLLOUT } else { 0 };
        (read | write).cast_unsigned()
    }
}

impl Poller {
    /// A poller that reports at most `events_max` sockets a turn; the others come in the next turns, in fair order.
    ///
    /// # Errors
    /// Out of file descriptors.
    ///
    /// # Panics
    /// When `events_max` is 0.
    pub fn new(events_max: usize) -> Result<Self, SetupError> {
        assert!(events_max > 0, "a poller reports at least one event a turn");
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            let source = io::Error::last_os_error();
            let advice = socket_advice(&source);
            return Err(SetupError::new("creating an epoll", source, advice));
        }
        // SAFETY: the kernel has just given this descriptor and nobody else owns it.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; events_max].into_boxed_slice();
        Ok(Self { epoll, events })
    }

    /// Watches a socket under a token of the caller's choice.
    ///
    /// # Errors
    /// It is watched already, or the kernel's limit of watches is reached.
    pub fn add(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket.as_fd(), token, interest)
    }

    /// Changes token and interest of a watched socket.
    ///
    /// # Errors
    /// It is not watched.
    pub fn modify(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket.as_fd(), token, interest)
    }

    /// Stops watching a socket that stays open.
    ///
    /// # Errors
    /// It is not watched.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket.as_fd(), 0, Interest::READ)
    }

    fn control(
        &self,
        operation: libc::c_int,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.mask(),
            u64: token,
        };
        // SAFETY: both descriptors are open as long as they are borrowed; the kernel only reads `event`.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, socket.as_raw_fd(), &raw mut event) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Looks which sockets are ready, waiting at most `timeout` (zero: not at all) for the first. Gives how many are;
    /// [`ready`](Self::ready) tells which.
    ///
    /// # Errors
    /// The epoll is unusable.
    pub fn poll(&mut self, timeout: Duration) -> io::Result<usize> {
        let capacity = libc::c_int::try_from(self.events.len()).unwrap_or(libc::c_int::MAX);
        let count = if timeout.0 == 0 {
            // SAFETY: the array has room for `capacity` events and lives across the call.
            let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), capacity, 0) };
            libc::c_long::from(count)
        } else {
            let timeout = libc::timespec {
                tv_sec: libc::time_t::try_from(timeout.0 / 1_000_000_000).unwrap_or(libc::time_t::MAX),
                tv_nsec: (timeout.0 % 1_000_000_000).cast_signed(),
            };
            // epoll_pwait2 counts nanoseconds where epoll_wait counts milliseconds. libc has no function for it here.
            // SAFETY: as above; the kernel only reads `timeout`; no signal mask is given.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.epoll.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    capacity,
                    &raw const timeout,
                    ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            }
        };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(error),
            },
        }
    }

    /// The `index`-th ready socket of the last [`poll`](Self::poll), below the count it gave. By index, so that the
    /// caller may touch its sockets and this poller in between.
    #[must_use]
    pub fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        let flags = event.events.cast_signed();
        Ready {
            token: event.u64,
            readable: flags & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0,
            writable: flags & (libc::EPOLLOUT | libc::EPOLLERR) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::UdpOptions;
    use crate::udp::UdpSocket;
    use std::net::SocketAddr;

    const NOW: Duration = Duration(0);

    fn socket() -> UdpSocket {
        UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &UdpOptions::default()).unwrap()
    }

    #[test]
    fn a_socket_is_ready_until_it_is_drained() {
        let (sender, receiver) = (socket(), socket());
        let mut poller = Poller::new(4).unwrap();
        poller.add(&receiver, 1 << 40, Interest::READ).unwrap();
        assert_eq!(poller.poll(NOW).unwrap(), 0);
        sender.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(poller.poll(NOW).unwrap(), 1);
            assert_eq!(
                poller.ready(0),
                Ready {
                    token: 1 << 40,
                    readable: true,
                    writable: false
                }
            );
        }
        receiver.recv_from(&mut [0; 8]).unwrap();
        assert_eq!(poller.poll(NOW).unwrap(), 0);
    }

    #[test]
    fn more_ready_sockets_than_events_all_get_their_turn() {
        let sender = socket();
        let receivers: Vec<_> = (0..10).map(|_| socket()).collect();
        let mut poller = Poller::new(3).unwrap();
        for (token, receiver) in (0_u64..).zip(&receivers) {
            poller.add(receiver, token, Interest::READ).unwrap();
            sender.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        }
        let mut seen = [false; 10];
        for _ in 0..4 {
            for index in 0..poller.poll(NOW).unwrap() {
                seen[usize::try_from(poller.ready(index).token).unwrap()] = true;
            }
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn a_socket_may_be_asked_for_writing_and_be_removed() {
        let socket = socket();
        let mut poller = Poller::new(1).unwrap();
        poller.add(&socket, 1, Interest::READ).unwrap();
        poller.modify(&socket, 2, Interest::READ_WRITE).unwrap();
        assert_eq!(poller.poll(NOW).unwrap(), 1);
        assert_eq!(
            poller.ready(0),
            Ready {
                token: 2,
                readable: false,
                writable: true
            }
        );
        poller.remove(&socket).unwrap();
        assert_eq!(poller.poll(NOW).unwrap(), 0);
        assert!(poller.remove(&socket).is_err());
    }

    #[test]
    fn a_timeout_ends_the_wait() {
        let mut poller = Poller::new(1).unwrap();
        assert_eq!(poller.poll(Duration(1_000)).unwrap(), 0);
    }
}
