//! The initiator's way to a connection: try, wait longer after each failure, start over once the link was up.

use crate::options::TcpOptions;
use crate::tcp::{TcpConnecting, TcpStream};
use std::io;
use std::net::SocketAddr;
use types::{Duration, Timestamp};

#[derive(Debug)]
pub(in crate::link) struct Connector {
    peer: SocketAddr,
    local: Option<SocketAddr>,
    options: TcpOptions,
    /// An attempt is given up after this long.
    attempt_within: Duration,
    /// Shortest and longest pause between attempts.
    retry_min: Duration,
    retry_max: Duration,
    /// The pause after the next failure.
    retry_after: Duration,
    /// The next failure is a refusal.
    is_refused: bool,
    attempt: Attempt,
}

#[derive(Debug)]
enum Attempt {
    Waiting { until: Timestamp },
    Connecting { socket: TcpConnecting, until: Timestamp },
}

impl Connector {
    pub(in crate::link) const fn new(
        peer: SocketAddr,
        local: Option<SocketAddr>,
        options: TcpOptions,
        attempt_within: Duration,
        retry: (Duration, Duration),
    ) -> Self {
        Self {
            peer,
            local,
            options,
            attempt_within,
            retry_min: retry.0,
            retry_max: retry.1,
            retry_after: retry.0,
            is_refused: false,
            attempt: Attempt::Waiting { until: Timestamp::NONE },
        }
    }

    /// Where it connects to.
    pub(in crate::link) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Goes on connecting; gives the connection once, or why this attempt failed. The owner tells what becomes of the
    /// connection by [`on_up`](Self::on_up) and [`on_down`](Self::on_down).
    pub(in crate::link) fn turn(&mut self, now: Timestamp) -> io::Result<Option<TcpStream>> {
        match &mut self.attempt {
            Attempt::Waiting { until } if now < *until => Ok(None),
            Attempt::Waiting { .. } => {
                let socket = TcpConnecting::start(self.peer, self.local, &self.options)?;
                self.attempt = Attempt::Connecting {
                    socket,
                    until: now + self.attempt_within,
                };
                Ok(None)
            }
            Attempt::Connecting { socket, until } => match socket.poll()? {
                Some(stream) => Ok(Some(stream)),
                None if now >= *until => Err(io::Error::from(io::ErrorKind::TimedOut)),
                None => Ok(None),
            },
        }
    }

    /// The link is up: the next failure is a new one.
    pub(in crate::link) fn on_up(&mut self) {
        self.retry_after = self.retry_min;
    }

    /// One of the ends refuses, and a person has to look: the pause that follows may be longer than those after other
    /// failures, because the other end may have believed to be up meanwhile.
    pub(in crate::link) const fn on_refusal(&mut self) {
        self.is_refused = true;
    }

    /// The connection, or the attempt at one, is gone: pause, then try again.
    pub(in crate::link) fn on_down(&mut self, now: Timestamp) {
        let is_refused = std::mem::take(&mut self.is_refused);
        let longest = if is_refused { RETRY_REFUSED_LAST } else { self.retry_max };
        let pause = Duration(self.retry_after.0.min(longest.0));
        self.attempt = Attempt::Waiting { until: now + pause };
        self.retry_after = Duration((2 * pause.0).min(longest.0));
    }
}

/// Longest pause after a refusal.
const RETRY_REFUSED_LAST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// An address of this machine where nobody listens.
    fn nobody() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over_after_a_success() {
        let retry = (Duration(10), Duration(50));
        let mut connector = Connector::new(nobody(), None, TcpOptions::default(), Duration(1_000), retry);
        let mut now = Timestamp(1_000);
        let mut pauses = Vec::new();
        for attempt in 0..6 {
            if attempt == 5 {
                connector.on_up();
            }
            while connector.turn(now).is_ok() {}
            connector.on_down(now);
            let failed = now;
            while matches!(connector.attempt, Attempt::Waiting { until } if now < until) {
                assert!(connector.turn(now).is_ok_and(|stream| stream.is_none()));
                now = now + Duration(1);
            }
            pauses.push(now.since(failed).0);
        }
        assert_eq!(pauses, [10, 20, 40, 50, 50, 10]);
    }
}
