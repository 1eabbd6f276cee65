//! The thread at the control socket: one operator after the other, one request a connection.

use super::names;
use super::{Action, Answer, LimitScopeName, Order, Question, Refusal, Reply, Request, Wires};
use crate::config::{Config, trading_day};
use crate::limits::{CONTROL_ANSWER_WAIT_NS, CONTROL_TIMEOUT_NS, MAX_CONTROL_REQUEST};
use net::SetupError;
use net::host::peer_user;
use orders::{Limit, LimitScope, Stop};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use types::SessionId;

/// The open control socket. It closes when this is dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
struct Server {
    config: Arc<Config>,
    listener: UnixListener,
    /// By shard.
    shards: Vec<Shard>,
    /// The number of the last order.
    last: u64,
}

/// What a request comes to.
enum Job {
    /// Shards are asked, and nothing changes.
    Ask(Question),
    /// Something changes.
    Give(Action),
}

/// A shard, as seen from here.
struct Shard {
    wires: Wires,
    /// Questions whose last answer is to come: those of a start that caught up, or one that came too late for its operator.
    owed: usize,
}

/// How long the thread sleeps when nobody comes: how late it sees that it is to stop.
const SLEEP: Duration = Duration::from_millis(20);

/// How often it looks for a shard's answer.
const LOOK: Duration = Duration::from_micros(200);

impl Control {
    /// Listens at a path that only this user can reach. `last` is the number of the last order that was ever given.
    ///
    /// # Errors
    /// Something else is at the path, or another gateway listens there.
    pub(crate) fn open(path: &Path, config: Arc<Config>, wires: Vec<Wires>, last: u64) -> Result<Self, SetupError> {
        let listener = bind(path).map_err(|error| {
            SetupError::new(
                format!("listening at {}", path.display()),
                error,
                "stop the other gateway, or configure another [control] socket",
            )
        })?;
        let shards = wires.into_iter().map(Shard::new).collect();
        let mut server = Server {
            config,
            listener,
            shards,
            last,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                server.turn();
            }
        };
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(run)
            .map_err(|error| SetupError::new("starting the control thread", error, "raise the limit of processes"))?;
        Ok(Self {
            path: path.to_owned(),
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there was printed there.
            drop(thread.join());
        }
        drop(fs::remove_file(&self.path));
    }
}

/// Binds the socket. One that a killed gateway left is taken away, one that somebody listens at is not.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Err(error) = UnixStream::connect(path)
        && error.kind() == io::ErrorKind::ConnectionRefused
    {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Server {
    fn turn(&mut self) {
        match self.listener.accept() {
            Ok((stream, _)) => {
                // An operator who goes away is no failure.
                if let Err(error) = self.serve(&stream) {
                    tracing::debug!(%error, "control connection");
                }
            }
            Err(_) => thread::sleep(SLEEP),
        }
    }

    fn serve(&mut self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_nanos(CONTROL_TIMEOUT_NS)))?;
        stream.set_write_timeout(Some(Duration::from_nanos(CONTROL_TIMEOUT_NS)))?;
        let mut out = BufWriter::new(stream);
        let mut tell = |reply: &Reply| -> io::Result<()> {
            serde_json::to_writer(&mut out, reply)?;
            out.write_all(b"\n")
        };
        let last = match read(stream) {
            Ok((operator, request)) => match self.carry_out(operator, &request, &mut tell)? {
                Ok(number) => Reply::Done { number },
                Err(reason) => Reply::Refused { reason },
            },
            Err(reason) => Reply::Refused { reason },
        };
        tell(&last)?;
        out.flush()
    }

    /// Asks the shards. Gives the number of an order, or why not; fails when the operator is gone.
    fn carry_out(
        &mut self,
        operator: u32,
        request: &Request,
        tell: &mut impl FnMut(&Reply) -> io::Result<()>,
    ) -> io::Result<Result<Option<u64>, String>> {
        let action = match self.job(request) {
            Ok(Job::Ask(question)) => return Ok(self.ask(question, tell)?.map(|()| None)),
            Ok(Job::Give(action)) => action,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Err(reason) = self.ask(Question::Check(action), tell)? {
            return Ok(Err(reason));
        }
        self.last += 1;
        let number = self.last;
        let order = serde_json::to_string(request).unwrap_or_default();
        tracing::warn!(number, operator, order, "an operator's order");
        let order = Order {
            number,
            operator,
            action,
        };
        Ok(self.ask(Question::Order(order), tell)?.map(|()| Some(number)))
    }

    /// What a request comes to, by the names of the config.
    fn job(&self, request: &Request) -> Result<Job, String> {
        Ok(match request {
            Request::Kill(scope) => Job::Give(Action::Kill(scope.to_orders())),
            Request::LetReduce(scope) => Job::Give(Action::LetReduce(scope.to_orders())),
            Request::Revive(scope) => Job::Give(Action::Revive(scope.to_orders())),
            Request::Cancel(scope) => Job::Give(Action::Cancel(scope.to_orders())),
            Request::Killed(scope) => Job::Ask(Question::Killed(scope.to_orders())),
            Request::Orders { session: Some(id) } if !self.has_session(SessionId(*id)) => {
                return Err(format!("the config has no session {id}"));
            }
            Request::Orders { session } => Job::Ask(Question::Orders(session.map(SessionId))),
            Request::Audit => Job::Ask(Question::Audit),
            Request::Sessions => Job::Ask(Question::Sessions),
            Request::Links => Job::Ask(Question::Links),
            Request::Prefilter => Job::Ask(Question::Prefilter),
            Request::Disable(session) => Job::Give(Action::Disable(SessionId(*session))),
            Request::Enable(session) => Job::Give(Action::Enable(SessionId(*session))),
            Request::Roll(day) => {
                let day = trading_day(*day).map_err(|error| error.to_string())?;
                Job::Give(Action::Roll(day))
            }
            Request::Limits(None) => Job::Ask(Question::Limits(None)),
            Request::Limits(Some(name)) => Job::Ask(Question::Limits(Some(self.scope(name)?))),
            Request::Set { scope, limit, value } => Job::Give(self.change(scope, limit, value)?),
        })
    }

    fn has_session(&self, id: SessionId) -> bool {
        self.config.sessions.iter().any(|session| session.id == id)
    }

    fn scope(&self, name: &LimitScopeName) -> Result<LimitScope, String> {
        names::scope(name, &self.config).ok_or_else(|| format!("the config has no {name}"))
    }

    fn change(&self, name: &LimitScopeName, limit: &str, value: &str) -> Result<Action, String> {
        let scope = self.scope(name)?;
        let key =
            Limit::from_name(limit).ok_or_else(|| format!("{limit} is no limit; `ctl limits` shows their names"))?;
        let parsed = scope.parse(key, value);
        let value = parsed.map_err(|error| format!("{name}: {limit} = {value}: {error}"))?;
        Ok(Action::SetLimit {
            scope,
            limit: key,
            value,
        })
    }

    /// Asks every shard the same, and tells what they answer. Gives why it is refused; fails when the operator is gone.
    fn ask(
        &mut self,
        question: Question,
        tell: &mut impl FnMut(&Reply) -> io::Result<()>,
    ) -> io::Result<Result<(), String>> {
        for (index, shard) in self.shards.iter_mut().enumerate() {
            if let Err(reason) = shard.settle(index).and_then(|()| shard.ask(index, question)) {
                return Ok(Err(reason));
            }
        }
        let mut sessions = BTreeMap::new();
        for index in 0..self.shards.len() {
            loop {
                let answer = match self.shards[index].answer(index) {
                    Ok(answer) => answer,
                    Err(reason) => return Ok(Err(reason)),
                };
                match answer {
                    Answer::Done(Ok(())) => break,
                    // All shards refuse alike.
                    Answer::Done(Err(refusal)) => return Ok(Err(self.reason(&question, refusal))),
                    Answer::OpenOrder(order) => tell(&Reply::order(&order))?,
                    Answer::Link(link) => {
                        let shard = self.config.shards[index].id;
                        tell(&Reply::Link(Box::new(link.reply(shard, &self.config))))?;
                    }
                    Answer::Audited(open, difference) => tell(&Reply::audit(index, open, difference))?,
                    Answer::Limit(view) if index == 0 || view.scope.instrument().is_some() => {
                        tell(&Reply::limit(&view, &self.config))?;
                    }
                    Answer::Prefilter(view) => tell(&Reply::prefilter(index, &view))?,
                    Answer::Session(view) => {
                        let (home, open_orders) = sessions.entry(view.session).or_insert((None, 0));
                        *home = home.or(view.home);
                        *open_orders += view.open_orders;
                    }
                    // All shards have the same switches.
                    Answer::Killed(stop) if index == 0 => tell(&Reply::Killed {
                        killed: stop == Stop::All,
                        reduce_only: stop == Stop::ReduceOnly,
                    })?,
                    Answer::Killed(_) | Answer::Limit(_) => {}
                }
            }
        }
        for session in &self.config.sessions {
            if let Some((Some(home), open_orders)) = sessions.get(&session.id) {
                tell(&Reply::session(session, home, *open_orders))?;
            }
        }
        Ok(Ok(()))
    }

    /// Why shards refuse, in the words of the config.
    fn reason(&self, question: &Question, refusal: Refusal) -> String {
        let scope = match question {
            Question::Check(action) | Question::Order(Order { action, .. }) => action.scope(),
            Question::Killed(scope) => (*scope).into(),
            Question::Limits(Some(scope)) => *scope,
            Question::Orders(_)
            | Question::Limits(None)
            | Question::Sessions
            | Question::Links
            | Question::Prefilter
            | Question::Audit => LimitScope::Firm,
        };
        let name = names::scope_name(scope, &self.config);
        match (refusal, question) {
            (Refusal::UnknownScope, _) => format!("the config has no {name}"),
            (refusal, Question::Check(Action::SetLimit { limit, value, .. })) => {
                format!("{name}: {} = {value}: {refusal}", limit.name())
            }
            (refusal, _) => refusal.to_string(),
        }
    }
}

impl Shard {
    const fn new(wires: Wires) -> Self {
        Self { wires, owed: 0 }
    }

    /// Waits for the answers to earlier questions.
    fn settle(&mut self, index: usize) -> Result<(), String> {
        while self.owed > 0 {
            self.answer(index)?;
        }
        Ok(())
    }

    fn ask(&mut self, index: usize, question: Question) -> Result<(), String> {
        self.wires
            .questions
            .push(question)
            .map_err(|_| format!("shard {index} takes no more questions"))?;
        self.owed += 1;
        Ok(())
    }

    /// The next answer.
    fn answer(&mut self, index: usize) -> Result<Answer, String> {
        let end = Instant::now() + Duration::from_nanos(CONTROL_ANSWER_WAIT_NS);
        loop {
            if let Ok(answer) = self.wires.answers.pop() {
                if matches!(answer, Answer::Done(_)) {
                    self.owed -= 1;
                }
                return Ok(answer);
            }
            if Instant::now() >= end {
                return Err(format!("shard {index} does not answer; it obeys as soon as it runs"));
            }
            thread::sleep(LOOK);
        }
    }
}

/// Who asks, and what.
fn read(stream: &UnixStream) -> Result<(u32, Request), String> {
    let operator = peer_user(stream).map_err(|error| format!("who asks cannot be told: {error}"))?;
    let mut line = String::new();
    let limit = u64::try_from(MAX_CONTROL_REQUEST).unwrap_or(u64::MAX);
    BufReader::new(stream.take(limit))
        .read_line(&mut line)
        .map_err(|error| format!("no request came: {error}"))?;
    let request = serde_json::from_str(&line).map_err(|error| format!("no request: {error}"))?;
    Ok((operator, request))
}
