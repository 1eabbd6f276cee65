//! Everything but the gateway's shard, taking turns in one thread: exchange, replay, price feed and both clients. It also
//! leads through the scenes of the demo, because it is the one that sees them.

use ::gateway::executor::Component;
use ::gateway::feed::PriceFeed;
use ::gateway::status::Status;
use feeds::{Replay, UdpReceiver};
use latency::clock::Clock;
use latency::{Counter, Name, Phase, Recording, RecordingSummary};
use net::Carrier;
use net::link::AnyLink;
use sim::client::{Accounting, Client};
use sim::exchange::{AnyJournal, Exchange};
use sim::lossy::{Dropped, LossSwitch, Lossy};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use types::{Duration, Timestamp};

/// The exchange of the demo, with a network under it that can lose.
pub(super) type DemoExchange = Exchange<AnyLink<Lossy<Carrier>>, AnyJournal>;

/// What takes turns.
pub(super) struct Stage {
    pub(super) exchange: DemoExchange,
    pub(super) replay: Replay,
    pub(super) ticks: UdpReceiver,
    pub(super) prices: PriceFeed,
    pub(super) fix: Client,
    pub(super) native: Client,
    pub(super) clock: Clock,
    pub(super) recording: Option<Recording>,
    pub(super) loss: LossSwitch,
    pub(super) gateway: Arc<Status>,
    pub(super) scenes: Vec<Scene>,
    pub(super) watch: Arc<Watch>,
    pub(super) outcome: Sender<Outcome>,
    pub(super) act: Act,
}

/// One part of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    /// What its tables are called; empty for one that is not shown.
    pub(super) name: &'static str,
    /// It ends when each client has sent so many orders in it …
    pub(super) orders: u64,
    /// … or, at the latest, after this long.
    pub(super) longest: Duration,
    /// Packets of the venue link that are lost, in a million, each way.
    pub(super) loss_per_million: u32,
}

/// What the main thread shows while the stage plays.
#[derive(Default, Debug)]
pub(super) struct Watch {
    /// The scene that plays, its place in the list; more than there are when all are over.
    pub(super) scene: AtomicUsize,
    pub(super) fix_sent: AtomicU64,
    pub(super) native_sent: AtomicU64,
    pub(super) is_over: AtomicBool,
    /// Why it could not be played.
    pub(super) is_stuck: AtomicBool,
}

/// What the stage knows when all is over.
pub(super) struct Outcome {
    pub(super) fix: Accounting,
    pub(super) native: Accounting,
    pub(super) dropped: Dropped,
    pub(super) recording: io::Result<RecordingSummary>,
}

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Links come up, clients log on, books fill.
    Waiting { since: Timestamp },
    /// A scene plays.
    Playing {
        scene: usize,
        start: Timestamp,
        fix_before: u64,
        native_before: u64,
    },
    /// A scene is over and its last answers are awaited.
    Settling { scene: usize, since: Timestamp },
    /// History stands still, so that no order changes any more, and the last reports arrive.
    Closing { since: Timestamp },
    /// Nothing is left to do.
    Over,
}

/// Ticks that the clients must have seen before they trade: the books are filled then.
const TICKS_BEFORE_START: u64 = 200;

/// How long links and logons may take.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the market stands still before it is said which orders are open.
const QUIET: Duration = Duration::from_millis(300);

/// How long the last answers of a scene may take.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

impl Component for Stage {
    fn turn(&mut self, now: Timestamp) -> bool {
        let mut worked = self.exchange.turn(now);
        if !matches!(self.act, Act::Closing { .. } | Act::Over) {
            worked |= self.replay.turn(now);
        }
        worked |= self.prices.turn(now);
        let Self {
            ticks,
            fix,
            native,
            clock,
            ..
        } = self;
        worked |= ticks.turn(now, &mut |event| {
            let received = clock.now();
            fix.on_feed(received, event);
            native.on_feed(received, event);
        });
        worked |= self.fix.turn(now);
        worked |= self.native.turn(now);
        self.lead(now);
        worked
    }

    fn finish(&mut self) {
        let now = self.clock.now();
        let recording = match self.recording.take() {
            Some(recording) => recording.finish(now),
            None => Err(io::Error::other("the recording was finished before")),
        };
        let outcome = Outcome {
            fix: self.fix.accounting(),
            native: self.native.accounting(),
            dropped: self.dropped(),
            recording,
        };
        // Nobody waits for it when the main thread gave up.
        drop(self.outcome.send(outcome));
    }
}

impl Stage {
    /// Goes on to the next act when it is time.
    fn lead(&mut self, now: Timestamp) {
        let (fix, native) = (self.fix.progress(), self.native.progress());
        self.watch.fix_sent.store(fix.sent, Ordering::Relaxed);
        self.watch.native_sent.store(native.sent, Ordering::Relaxed);
        match self.act {
            Act::Waiting { since } => {
                let is_ready = self.gateway.all_links_up()
                    && self.fix.is_logged_on()
                    && self.native.is_logged_on()
                    && fix.ticks.min(native.ticks) >= TICKS_BEFORE_START;
                if is_ready {
                    self.play(0, now);
                } else if now.since(since) >= START_TIMEOUT {
                    self.watch.is_stuck.store(true, Ordering::Relaxed);
                    self.end();
                }
            }
            Act::Playing {
                scene,
                start,
                fix_before,
                native_before,
            } => {
                let Scene { orders, longest, .. } = self.scenes[scene];
                let fewest = (fix.sent - fix_before).min(native.sent - native_before);
                if fewest >= orders || now.since(start) >= longest {
                    self.close(scene, start, now);
                }
            }
            Act::Settling { scene, since } => {
                let is_settled = self.fix.is_settled() && self.native.is_settled();
                self.drain();
                if is_settled || now.since(since) >= SETTLE_TIMEOUT {
                    if scene + 1 < self.scenes.len() {
                        self.play(scene + 1, now);
                    } else {
                        self.act = Act::Closing { since: now };
                    }
                }
            }
            Act::Closing { since } => {
                if now.since(since) >= QUIET {
                    self.end();
                }
            }
            Act::Over => {}
        }
    }

    fn play(&mut self, scene: usize, now: Timestamp) {
        self.count(now);
        self.loss.set(self.scenes[scene].loss_per_million);
        self.fix.start(now);
        self.native.start(now);
        self.watch.scene.store(scene, Ordering::Relaxed);
        let (fix_before, native_before) = (self.fix.progress().sent, self.native.progress().sent);
        self.act = Act::Playing {
            scene,
            start: now,
            fix_before,
            native_before,
        };
    }

    fn close(&mut self, scene: usize, start: Timestamp, now: Timestamp) {
        self.fix.stop();
        self.native.stop();
        self.loss.set(0);
        let name = self.scenes[scene].name;
        if !name.is_empty() {
            self.write(Phase {
                start,
                end: now,
                name: Name::new(name),
            });
        }
        self.count(now);
        self.act = Act::Settling { scene, since: now };
    }

    fn end(&mut self) {
        self.act = Act::Over;
        // Before the gateway's link ends: over TCP the exchange sees that at once, and cancels what is open.
        self.exchange.record_open_orders(self.clock.now());
        // The gateway is stopped next, with the clients still there.
        self.fix.expect_close();
        self.native.expect_close();
        self.watch.scene.store(self.scenes.len(), Ordering::Relaxed);
        self.watch.is_over.store(true, Ordering::Release);
    }

    /// Writes down what the venue link has done so far, at a boundary of a scene.
    fn count(&mut self, now: Timestamp) {
        let gateway = &self.gateway.links[0];
        let mut sums = [
            ("link.retransmitted", gateway.retransmitted.load(Ordering::Relaxed)),
            ("link.naks_sent", gateway.naks_sent.load(Ordering::Relaxed)),
        ];
        for (_, counters) in self.exchange.link_counters() {
            sums[0].1 += counters.retransmitted;
            sums[1].1 += counters.naks_sent;
        }
        let dropped = self.dropped();
        for (name, value) in sums
            .into_iter()
            .chain([("link.packets_dropped", dropped.sent + dropped.received)])
        {
            self.write(Counter {
                time: now,
                value,
                name: Name::new(name),
            });
        }
    }

    /// Packets that the network between gateway and exchange has lost.
    fn dropped(&self) -> Dropped {
        let mut sum = Dropped::default();
        for (_, link) in self.exchange.links() {
            if let AnyLink::Ltp(link) = link {
                let dropped = link.datagrams().dropped();
                sum.sent += dropped.sent;
                sum.received += dropped.received;
            }
        }
        sum
    }

    /// Brings what was recorded to the disk, between scenes only: it would hold up the others.
    fn drain(&mut self) {
        if let Some(recording) = &mut self.recording
            && let Err(error) = recording.turn()
        {
            tracing::error!(%error, "recording");
            self.recording = None;
        }
    }

    fn write(&mut self, record: impl Into<latency::Record>) {
        if let Some(recording) = &mut self.recording
            && let Err(error) = recording.write(record)
        {
            tracing::error!(%error, "recording");
            self.recording = None;
        }
    }
}
