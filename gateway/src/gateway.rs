//! Puts a gateway together from its config: journals and what they remember, rings between shards, shared numbers, and a
//! worker a shard.

use crate::client_links::{ClientLink, ClientLinks};
use crate::client_output::ClientOutputs;
use crate::clients::Clients;
use crate::config::{Config, Structure};
use crate::config_limits::{self, ScopeLimits};
use crate::control::{self, Control, Order};
use crate::crossing::{self, Crossing, Lane};
use crate::door::{self, Binding, Delivery, Door, Queues};
use crate::executor::{self, Component, Placement, Running};
use crate::limits::{
    JOURNAL_RESERVE_BYTES, MAX_PENDING_LOGONS, MAX_REPORT_LENGTH, RECALL_PORTION, RECORD_OVERHEAD_BYTES,
};
use crate::live::{CancelReserve, Live, VenueSent};
use crate::marks::Marks;
use crate::recall::Recalls;
use crate::record::{RECORD_VERSION, Record};
use crate::recount::{self, Miscount};
use crate::references::References;
use crate::replay::{Kept, KeptClient, Recovered, ReplayError, Summary};
use crate::shard::Shard;
use crate::shared_limits::SharedLimits;
use crate::status::{Addresses, DoorStatus, Schedule, Status};
use crate::worker::Worker;
use journal::{JournalError, JournalReader, JournalWriter, Seekers};
use latency::Recorder;
use latency::clock::Clock;
use net::link::{AnyLink, LinkConfig, LinkWatch, Resume};
use net::{Carrier, Datagram, Link, SetupError};
use orders::{LimitError, LimitScope};
use rtrb::Consumer;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use types::{SequenceNumber, SessionId, ShardId, Timestamp, TradingDay, VenueId};

/// A gateway of which everything is checked and recovered. What belongs to a shard's own thread is built there.
pub struct Gateway {
    config: Arc<Config>,
    clock: Clock,
    references: References,
    /// The door's ends of the queues to the shards.
    arrivals: Queues,
    /// The control desk's ends of the queues to the shards.
    wires: Vec<control::Wires>,
    /// The number of the last order that an operator gave.
    controlled: u64,
    /// Instances of templates that are a client's for the day.
    bindings: Vec<Binding>,
    door_status: Arc<DoorStatus>,
    statuses: Vec<Arc<Status>>,
    shards: Vec<PreparedShard>,
    summaries: Vec<Summary>,
}

/// Where clients and operators come in. All close when this is dropped.
#[derive(Debug)]
pub struct Entrances {
    door: Door,
    _control: Option<Control>,
}

/// One shard, ready to be built on its thread.
pub struct PreparedShard {
    config: Arc<Config>,
    id: ShardId,
    clock: Clock,
    journal: JournalWriter,
    recovered: Recovered,
    crossings: Vec<Crossing>,
    arrivals: Consumer<Delivery>,
    control: control::Desk,
    recalls: Recalls,
    seekers: Arc<Seekers>,
    references: References,
    shared: SharedLimits,
    status: Arc<Status>,
}

/// Why a gateway does not start.
#[derive(Debug)]
pub enum StartError {
    /// The journal of a shard cannot be opened.
    Journal(JournalError),
    /// The journal of a shard cannot be replayed.
    Replay { directory: PathBuf, error: ReplayError },
    /// The config's trading day is before the journal's.
    PastDay { config: TradingDay, journal: TradingDay },
    /// After the replay of all journals something else is counted of an account's limits than it takes.
    Miscount(Miscount),
    /// A limit that the config has changed does not go together with what an operator set.
    Limits { scope: LimitScope, error: LimitError },
    /// A shard has lost with its machine orders of operators, and no other remembers them all.
    OrdersGone {
        shard: ShardId,
        /// The first and the last that are lost.
        numbers: [u64; 2],
    },
    /// Of two shards one has lost with its machine what the other had sent it, and the other does not keep all of that.
    CrossingGone {
        from: ShardId,
        to: ShardId,
        /// The first message that is lost, and the first that is kept.
        lost: SequenceNumber,
        kept: SequenceNumber,
        /// With so many `crossing_messages` it would keep all.
        crossing_messages: u64,
    },
    /// A shard has lost with its machine what it had sent to another, which has it.
    CrossingLost {
        from: ShardId,
        to: ShardId,
        /// The number of the next message by the shard that sent them, and by the other.
        next: SequenceNumber,
        wanted: SequenceNumber,
    },
    /// The host lacks something.
    Host(String),
}

impl Gateway {
    /// Opens the journals, replays what they hold, and connects the shards with each other.
    ///
    /// # Errors
    /// A journal cannot be opened or replayed, or the host lacks what a shard needs.
    pub fn prepare(config: Config, clock: Clock) -> Result<Self, StartError> {
        Self::check_host(&config)?;
        let config = Arc::new(config);
        let shared = SharedLimits::new(&config.orders[0], config.shards.len());
        let references = References::new(&config.instruments);
        let mut journals = Vec::new();
        let mut recovered = Vec::new();
        let mut shared_by = Vec::new();
        for shard in &config.shards {
            let mut shared = shared.clone();
            let (writer, found) = open_journal(&config, shard.id, &mut shared)?;
            journals.push(writer);
            recovered.push(found);
            shared_by.push(shared);
        }
        let orders = recovered.iter().map(|found| found.shard.orders()).collect::<Vec<_>>();
        let miscount = recount::miscount(&config.orders[0], &orders, &shared);
        miscount.map_or(Ok(()), |miscount| Err(StartError::Miscount(miscount)))?;
        let controlled = take_missed_orders(&mut recovered)?;
        take_config_limits(&config, &recovered, &shared, clock.now())?;
        let crossings = connect(&config, &recovered)?;
        let (arrivals, queues) = door::queues(config.shards.len());
        let of_today = recovered
            .iter()
            .filter(|found| found.shard.orders().day() >= config.trading_day);
        let bindings = of_today.flat_map(|found| found.shard.bindings()).collect();
        let (wires, desks) = control::wires(config.shards.len());
        for found in &recovered {
            let day = found.shard.orders().day();
            if day > config.trading_day {
                tracing::warn!(
                    day = day.0,
                    config = config.trading_day.0,
                    "the trading day is one that an operator began"
                );
            }
            found.shard.log_changed_limits(&config);
        }
        let (recalls, seekers) = recalls(&config)?;
        let statuses = config
            .shards
            .iter()
            .map(|_| Arc::new(Status::new(config.venues.len())))
            .collect::<Vec<_>>();
        let summaries = recovered.iter().map(|found| found.summary).collect();
        let shards = journals
            .into_iter()
            .zip(recovered)
            .zip(crossings)
            .zip(queues)
            .zip(recalls)
            .zip(desks)
            .zip(shared_by)
            .zip(&config.shards)
            .map(
                |(((((((journal, recovered), crossings), arrivals), recalls), control), shared), shard)| {
                    PreparedShard {
                        config: Arc::clone(&config),
                        id: shard.id,
                        clock,
                        journal,
                        recovered,
                        crossings,
                        arrivals,
                        control,
                        recalls,
                        seekers: Arc::clone(&seekers),
                        references: references.clone(),
                        shared,
                        status: Arc::clone(&statuses[usize::from(shard.id.0)]),
                    }
                },
            )
            .collect();
        Ok(Self {
            config,
            clock,
            references,
            arrivals,
            wires,
            controlled,
            bindings,
            door_status: Arc::default(),
            statuses,
            shards,
            summaries,
        })
    }

    /// Looks for what a gateway needs of the host: permitted CPUs, io_uring, open files, locked memory. Raises the limit of
    /// open files as far as the host lets it.
    ///
    /// # Errors
    /// What is missing, and what to do about it.
    pub fn check_host(config: &Config) -> Result<(), StartError> {
        let permitted = net::cpu::permitted();
        if let Some(cpu) = config
            .shards
            .iter()
            .filter_map(|shard| shard.cpu)
            .find(|cpu| !permitted.contains(cpu))
        {
            return Err(StartError::Host(format!(
                "a shard is placed on CPU {cpu}, this process may use {permitted:?}; change `cpu` in the config, or taskset, \
                 cpuset or container limits"
            )));
        }
        if let Err(refused) = net::host::io_uring() {
            return Err(StartError::Host(refused.to_string()));
        }
        let files = (config.sessions.len() + MAX_PENDING_LOGONS) as u64 + OTHER_OPEN_FILES;
        if let Some(soft) = net::host::raise_open_files(files).soft
            && soft < files
        {
            return Err(StartError::Host(format!(
                "{files} files may have to be open at once, the limit is {soft}; raise it with `ulimit -n {files}` or LimitNOFILE"
            )));
        }
        let memlock = net::host::memlock();
        let needed = LOCKED_BYTES_A_SHARD * config.shards.len() as u64;
        // `None` is no limit.
        if let Some(soft) = memlock.soft
            && soft < needed
        {
            return Err(StartError::Host(format!(
                "{needed} bytes of locked memory are needed, the limit is {soft}; raise it with `ulimit -l {}` or LimitMEMLOCK",
                needed / 1_024
            )));
        }
        Ok(())
    }

    /// The config.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Where the feed's thread writes prices.
    #[must_use]
    pub const fn references(&self) -> &References {
        &self.references
    }

    /// The numbers of each shard, by [`ShardId`].
    #[must_use]
    pub fn statuses(&self) -> &[Arc<Status>] {
        &self.statuses
    }

    /// The numbers of the door.
    #[must_use]
    pub const fn door_status(&self) -> &Arc<DoorStatus> {
        &self.door_status
    }

    /// What each shard's journal held, by [`ShardId`].
    #[must_use]
    pub fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    /// Opens the door, and gives the shards, to be built and run. Clients that come before their shard runs wait for it.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub fn open(self) -> Result<(Entrances, Vec<PreparedShard>), SetupError> {
        let door = Door::open(
            &self.config,
            self.clock,
            &self.bindings,
            self.arrivals,
            &self.statuses,
            self.door_status,
        )?;
        let control = match &self.config.control {
            Some(path) => Some(Control::open(
                path,
                Arc::clone(&self.config),
                self.wires,
                self.controlled,
            )?),
            None => None,
        };
        let entrances = Entrances {
            door,
            _control: control,
        };
        Ok((entrances, self.shards))
    }
}

impl Entrances {
    /// The addresses of the whole gateway, beside those of its shards.
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        self.door.addresses()
    }
}

impl PreparedShard {
    /// Its number.
    #[must_use]
    pub const fn id(&self) -> ShardId {
        self.id
    }

    /// Where it runs, by its config.
    #[must_use]
    pub fn placement(&self) -> Placement {
        let shard = &self.config.shards[usize::from(self.id.0)];
        Placement {
            name: format!("shard-{}", self.id),
            cpu: shard.cpu,
            idle: shard.idle,
        }
    }

    /// Runs it on a thread of its own. `wrap` may decorate the carriers of datagram links.
    ///
    /// # Errors
    /// The executor does not start, or an address cannot be had.
    pub fn run<D, W>(self, recorder: Recorder, wrap: W) -> io::Result<Running>
    where
        D: Datagram + 'static,
        W: FnMut(Carrier) -> D + Send + 'static,
    {
        let (placement, clock) = (self.placement(), self.clock);
        executor::run(&placement, clock, move || {
            self.build(recorder, wrap).map_err(io::Error::other)
        })
    }

    /// Runs it on a thread of its own, in which `companion` takes turns with it.
    ///
    /// # Errors
    /// The executor does not start, an address cannot be had, or the companion cannot be built.
    pub fn run_beside<C, F>(self, recorder: Recorder, companion: F) -> io::Result<Running>
    where
        C: Component + 'static,
        F: FnOnce() -> io::Result<C> + Send + 'static,
    {
        let (placement, clock) = (self.placement(), self.clock);
        executor::run(&placement, clock, move || {
            let companion = companion()?;
            let shard = self.build(recorder, |socket| socket).map_err(io::Error::other)?;
            Ok((shard, companion))
        })
    }

    /// Builds it on this thread: for a machine with fewer cores than components, where they take turns.
    ///
    /// # Errors
    /// An address cannot be had.
    pub fn build<D, W>(self, recorder: Recorder, mut wrap: W) -> Result<impl Component, SetupError>
    where
        D: Datagram,
        W: FnMut(Carrier) -> D,
    {
        let Self {
            config,
            id,
            clock,
            journal,
            mut recovered,
            crossings,
            arrivals,
            control,
            recalls,
            seekers,
            references,
            shared,
            status,
        } = self;
        let links = config
            .venues
            .iter()
            .zip(&recovered.venues)
            .map(|(venue, kept)| {
                let link = link(&venue.links[usize::from(id.0)].settings, kept, clock, &mut wrap)?;
                let which = format!("venue {}, shard {id}", venue.name);
                Ok((link, LinkWatch::new("venue link", which)))
            })
            .collect::<Result<Vec<_>, SetupError>>()?;
        let client_links = client_links(&config, std::mem::take(&mut recovered.client_links), clock, &mut wrap)?;
        let venues_sent = std::mem::take(&mut recovered.venues);
        let venues_sent = venues_sent.into_iter().map(VenueSent::from).collect();
        let clients = Clients::new(&config, id, arrivals)?;
        let begin = Begin::of(&config, &mut recovered);
        let outputs = std::mem::replace(&mut recovered.clients, ClientOutputs::none());
        let live = Live::new(
            clock,
            journal,
            config.journal.watermark,
            links,
            venues_sent,
            CancelReserve::new(&config, id),
            outputs,
            client_links,
            references,
            shared,
            crossings,
            recalls,
            recorder,
        );
        let mut worker = Worker {
            shard: recovered.shard,
            live,
            clients,
            control,
            marks: Marks::new(config.mark_every),
            status,
            schedule: Schedule::default(),
            _seekers: seekers,
        };
        begin.apply(&mut worker.shard, &mut worker.live);
        // With the limits that the journal and its beginning left.
        worker.live.outside = worker.shard.open_outside(&config)?;
        Ok(worker)
    }
}

/// What a shard writes into its journal before its first turn.
pub(crate) struct Begin {
    structure: Structure,
    /// Operators' orders that others were given and the shard was not.
    missed: Vec<Order>,
    /// What the config says otherwise than the one before.
    changed_limits: Vec<ScopeLimits>,
    /// The day of the config; it begins with this start, where the shard is not in it or in a later one.
    day: TradingDay,
    /// Outputs that the journal's end cut off.
    tail: Vec<(u16, Vec<u8>)>,
    /// Sessions whose connections ended with the last process.
    connected: Vec<SessionId>,
    /// Venues whose links went down with it.
    up: Vec<VenueId>,
}

impl Begin {
    /// What follows from how a journal ended.
    pub(crate) fn of(config: &Config, recovered: &mut Recovered) -> Self {
        Self {
            structure: config.structure,
            missed: std::mem::take(&mut recovered.missed),
            changed_limits: std::mem::take(&mut recovered.changed_limits),
            day: config.trading_day,
            tail: std::mem::take(&mut recovered.tail),
            connected: std::mem::take(&mut recovered.connected),
            up: std::mem::take(&mut recovered.up),
        }
    }

    /// Writes it, and tells the shard.
    pub(crate) fn apply<L: Link>(&self, shard: &mut Shard, live: &mut Live<L>) {
        let now = live.now;
        for (kind, payload) in &self.tail {
            live.journal.append(*kind, RECORD_VERSION, now, &[payload]);
        }
        live.append(&Record::Started {
            structure: &self.structure.to_bytes(),
        });
        for &venue in &self.up {
            live.append(&Record::VenueDown { venue });
            shard.on_venue_down(now, venue, live);
        }
        for &session in &self.connected {
            live.append(&Record::SessionDown { session });
            shard.on_session_down(now, session, live);
        }
        // Before what the config says now, as on the shards that were given them in their time: so all come to the same.
        for order in &self.missed {
            tracing::warn!(
                number = order.number,
                "an operator's order that a shard had not heard of is given again"
            );
            wait_for_room(live, shard.orders().open_orders());
            live.append(&Record::Controlled(*order));
            shard.on_control(now, order, live);
        }
        for (scope, changes) in &self.changed_limits {
            // Of a large firm they are more than the ring has room for.
            wait_for_room(live, 0);
            live.append(&Record::ConfigLimits {
                scope: *scope,
                changes: &config_limits::encode(changes),
            });
            shard.on_config_limits(now, *scope, changes, live);
        }
        // A missed order may have begun a later one.
        if shard.orders().day() < self.day {
            live.append(&Record::DayRolled { day: self.day });
            shard.on_day_roll(now, self.day, live);
        }
    }
}

/// Until the journal has room for an input that reports so many orders.
fn wait_for_room<L: Link>(live: &Live<L>, reports: usize) {
    let bytes = JOURNAL_RESERVE_BYTES + reports * (MAX_REPORT_LENGTH + RECORD_OVERHEAD_BYTES);
    while !live.journal.room(bytes) && !live.journal.has_failed() {
        std::thread::yield_now();
    }
}

/// Open files that are no clients' sockets: journals, links, rings, the log.
const OTHER_OPEN_FILES: u64 = 512;

/// What glommio locks for its rings, a shard.
const LOCKED_BYTES_A_SHARD: u64 = 512 << 10;

/// Opens a shard's journal and replays what it holds.
fn open_journal(
    config: &Config,
    shard: ShardId,
    shared: &mut SharedLimits,
) -> Result<(JournalWriter, Recovered), StartError> {
    let settings = config.journal.of_shard(shard);
    let writer = JournalWriter::open(&settings).map_err(StartError::Journal)?;
    let mut reader = JournalReader::open(&settings.directory).map_err(StartError::Journal)?;
    let recovered = Recovered::replay(config, shard, &mut reader, shared).map_err(|error| StartError::Replay {
        directory: settings.directory,
        error,
    })?;
    if recovered.day > config.trading_day {
        return Err(StartError::PastDay {
            config: config.trading_day,
            journal: recovered.day,
        });
    }
    Ok((writer, recovered))
}

/// Notes which operators' orders each shard is still to be given. Gives the number of the last one.
fn take_missed_orders(recovered: &mut [Recovered]) -> Result<u64, StartError> {
    let given = recovered.iter().map(|found| found.shard.given()).collect::<Vec<_>>();
    let missed = control::missed(&given).map_err(|(place, numbers)| StartError::OrdersGone {
        shard: ShardId(u8::try_from(place).expect("shards are bounded by MAX_SHARDS")),
        numbers,
    })?;
    for (found, missed) in recovered.iter_mut().zip(missed.by_shard) {
        found.missed = missed;
    }
    Ok(missed.last)
}

/// Sees that the limits that the config has changed can be taken, tells the log, and puts those that span shards in force
/// before any shard runs.
fn take_config_limits(
    config: &Config,
    recovered: &[Recovered],
    shared: &SharedLimits,
    now: Timestamp,
) -> Result<(), StartError> {
    for found in recovered {
        let conflict = |(scope, error)| StartError::Limits { scope, error };
        found
            .shard
            .check_config_limits(&found.missed, &found.changed_limits)
            .map_err(conflict)?;
    }
    let first = &recovered[0];
    for found in recovered.iter().filter(|found| !found.said_limits.are_none()) {
        found.shard.log_config_limits(&found.changed_limits, config);
    }
    for &(scope, ref changes) in &first.changed_limits {
        if let Some(limits) = first.shard.orders().shared_scope(scope, changes) {
            shared.set(now, &limits);
        }
    }
    Ok(())
}

/// Both ends of what looks up messages that sessions no longer hold: those of the shards, and the thread.
fn recalls(config: &Config) -> Result<(Vec<Recalls>, Arc<Seekers>), StartError> {
    let ends = config.shards.iter().map(|shard| {
        let directory = config.journal.of_shard(shard.id).directory;
        journal::recalls(directory, streams_of(config, shard.id), RECALL_PORTION)
    });
    let (mut recalls, seekers): (Vec<_>, Vec<_>) = ends.unzip();
    let seekers = Seekers::start(seekers, recalls.iter_mut())
        .map_err(|error| StartError::Host(format!("no thread for resends: {error}; raise the limit of processes")))?;
    Ok((recalls, Arc::new(seekers)))
}

/// Numbered messages to how many peers a shard's journal has.
pub(crate) fn streams_of(config: &Config, shard: ShardId) -> usize {
    let sessions = config.sessions.iter().filter(|session| session.shard == shard);
    sessions.count() + config.venues.len()
}

/// The rings between the shards, with what was on the way when the last process ended.
///
/// # Errors
/// The journals of two shards contradict each other: to go on would lose or double orders.
fn connect(config: &Config, recovered: &[Recovered]) -> Result<Vec<Vec<Crossing>>, StartError> {
    let mut ends = crossing::connect(config.shards.len(), config.crossing_messages, config.open_orders());
    for (from, crossings) in ends.iter_mut().enumerate() {
        for crossing in crossings {
            let sent = recovered[from].crossing(crossing.peer);
            let id = ShardId(u8::try_from(from).expect("shards are bounded by MAX_SHARDS"));
            let taken = recovered[usize::from(crossing.peer.0)].crossing(id);
            for lane in Lane::ALL {
                let (sent, taken) = (&sent.lanes[lane as usize], &taken.lanes[lane as usize]);
                let (wanted, oldest, next) = (taken.next_receive, sent.oldest(), sent.next_send);
                if wanted < oldest {
                    return Err(StartError::CrossingGone {
                        from: id,
                        to: crossing.peer,
                        lost: wanted,
                        kept: oldest,
                        crossing_messages: config.crossing_messages as u64 + (oldest.0 - wanted.0),
                    });
                }
                if wanted > next {
                    return Err(StartError::CrossingLost {
                        from: id,
                        to: crossing.peer,
                        next,
                        wanted,
                    });
                }
                crossing.resume(lane, next, sent.from(wanted));
            }
        }
    }
    Ok(ends)
}

/// The links of a shard's clients.
fn client_links<D, W>(
    config: &Config,
    kept: Vec<KeptClient>,
    clock: Clock,
    wrap: &mut W,
) -> Result<ClientLinks<AnyLink<D>>, SetupError>
where
    D: Datagram,
    W: FnMut(Carrier) -> D,
{
    let mut links = Vec::with_capacity(kept.len());
    for KeptClient { session, kept } in kept {
        let mut sessions = config.sessions.iter();
        if let Some(session) = sessions.find(|of_config| of_config.id == session)
            && let Some(settings) = &session.link
        {
            let link = link(settings, &kept, clock, wrap)?;
            links.push(ClientLink::new(
                session.id,
                link,
                kept.index,
                session.resend_messages,
                settings.window(),
            ));
        }
    }
    Ok(ClientLinks::new(links))
}

/// A link to a venue or client, with what it may not have received of what was sent before.
fn link<D, W>(settings: &LinkConfig, kept: &Kept, clock: Clock, wrap: &mut W) -> Result<AnyLink<D>, SetupError>
where
    D: Datagram,
    W: FnMut(Carrier) -> D,
{
    let resume = Resume {
        next_send: kept.next_send,
        next_receive: kept.next_receive,
    };
    let mut link = AnyLink::with_datagrams(settings, clock.now().0, resume, wrap)?;
    for (sequence, message) in &kept.messages {
        link.restore(*sequence, message);
    }
    Ok(link)
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => write!(f, "{error}"),
            Self::Replay { directory, error } => write!(f, "journal {}: {error}", directory.display()),
            Self::PastDay { config, journal } => write!(
                f,
                "trading_day = {} of the config is before the journal's day {}; name the current day, or another journal",
                config.0, journal.0
            ),
            Self::Miscount(miscount) => write!(
                f,
                "after the replay of all journals {miscount}: this is a fault of the gateway; begin an empty journal directory"
            ),
            Self::Limits { scope, error } => write!(
                f,
                "the limits that the config has changed for {scope:?} do not go together with those that operators set: \
                 {error}; change them one after the other with `tickgate ctl set`"
            ),
            Self::OrdersGone {
                shard,
                numbers: [first, last],
            } => write!(
                f,
                "shard {shard} has lost with its machine the orders {first} to {last} of operators, which no shard remembers: limits \
                 and kill switches would differ; begin an empty journal directory"
            ),
            Self::CrossingGone {
                from,
                to,
                lost,
                kept,
                crossing_messages,
            } => write!(
                f,
                "shard {to} has lost with its machine what shard {from} had sent it, from message {lost} on, and shard {from} \
                 keeps those from {kept} on: start with [capacity] crossing_messages = {crossing_messages} or more, and they \
                 come again out of its journal"
            ),
            Self::CrossingLost { from, to, next, wanted } => write!(
                f,
                "shard {from} has lost with its machine messages that it had sent to shard {to}: its next is {next}, and \
                 shard {to} wants {wanted}; compare both journals (`tickgate journal print`), settle what only one has, and \
                 begin with empty directories"
            ),
            Self::Host(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for StartError {}
