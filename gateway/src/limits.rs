//! Named maxima of the gateway. Whatever is not here is in the config, and then without a default.

/// Shards: one thread and core each. An `OrderId` has 8 bits for the shard.
pub const MAX_SHARDS: usize = 64;

/// Client sessions of one gateway.
pub const MAX_SESSIONS: usize = 4_096;

/// Accounts of one gateway.
pub const MAX_ACCOUNTS: usize = 65_536;

/// Venues, each with one link a shard.
pub const MAX_VENUES: usize = 16;

/// Instruments of the master.
pub const MAX_INSTRUMENTS: usize = 100_000;

/// Longest frame a client may send, bytes: a FIX message or a Soup packet. Longer ones end the connection.
pub const MAX_FRAME_LENGTH: usize = 4_096;

/// Bytes that are received from one connection before the next gets its turn. A multiple of the longest frame, so that
/// half a frame never blocks the buffer.
pub const RECEIVE_BUFFER_BYTES: usize = 4 * MAX_FRAME_LENGTH;

/// Connections of the gateway that have not logged on yet. One more takes the place of the one that has said nothing for
/// longest.
pub const MAX_PENDING_LOGONS: usize = 1_024;

/// Connections that are accepted at one address before those that came earlier are looked at.
pub const MAX_ACCEPTS_A_TURN: usize = 64;

/// Clients on their way from the door to one shard.
pub const MAX_ARRIVALS: usize = 64;

/// A connection that has not logged on after this long is closed, nanoseconds.
pub const LOGON_TIMEOUT_NS: u64 = 5_000_000_000;

/// Threads that check passwords and do TLS handshakes. A check takes tens of milliseconds and up to some tens of megabytes.
pub const CHECK_THREADS: usize = 2;

/// Who is not authorised hears it this long after the connection began, nanoseconds.
pub const REFUSAL_DELAY_NS: u64 = 500_000_000;

/// A client whose socket takes nothing for so long, while something is to be sent, is disconnected, nanoseconds.
pub const MAX_SEND_STALL_NS: u64 = 5_000_000_000;

/// Sockets that one turn looks at. The others come in the next turn.
pub const MAX_READY_SOCKETS: usize = 256;

/// Up to so many sockets are looked at one by one. That costs one system call where asking which are ready costs two.
pub const MAX_SOCKETS_LOOKED_AT: usize = 2;

/// Messages to venues that wait for what stands behind them in the client's buffer, so that they share a datagram. To
/// decide one takes a fifth of what it takes to send one, so that the first of them waits less than for two sends.
pub const MAX_ORDERS_HELD: usize = 8;

/// Messages of one venue link that are handled in one turn.
pub const MAX_VENUE_MESSAGES_A_TURN: usize = 64;

/// Orders that wait for a rate and are looked at in one turn. The others come in the next.
pub const MAX_QUEUED_A_TURN: usize = 64;

/// Messages from another shard that are handled in one turn, of each kind.
pub const MAX_CROSSINGS_A_TURN: usize = 16;

/// Instruments whose books are looked at in one turn for the orders that a shard holds.
pub const MAX_BOOKS_A_TURN: u32 = 32;

/// Positions that are looked at in one turn for a price that is another than their mark. An order that came meanwhile waits for
/// them.
pub const MAX_MARKS_A_TURN: u32 = 8;

/// Time between two rounds over the positions where the config does not say another, milliseconds.
pub const MARK_EVERY_MS: u64 = 1_000;

/// Longest time between two rounds over the positions, milliseconds: an hour.
pub const MAX_MARK_EVERY_MS: u64 = 3_600_000;

/// Longest time that the gateway keeps an order back, for own orders, for others to cross with or for a rate, and longest time
/// between two prices of a pegged order, milliseconds: an hour.
pub const MAX_WAIT_MS: u64 = 3_600_000;

/// Messages that a ring between two shards holds at most.
pub const MAX_CROSSING_MESSAGES: usize = 1 << 20;

/// Native clients of one shard that come in over links of their own. Every turn looks at each of their sockets.
pub const MAX_CLIENT_LINKS: usize = 16;

/// Messages of one client's link that are handled in one turn.
pub const MAX_CLIENT_MESSAGES_A_TURN: usize = 64;

/// Places in the window of a client's link for each order that it may have open. One in [`CLIENT_WINDOW_FOR_REPORTS`] places is kept for
/// what comes unasked: the end of each open order, and the answer to a request that the end crossed.
pub const WINDOW_AN_OPEN_ORDER: usize = 2 * CLIENT_WINDOW_FOR_REPORTS;

/// One in so many places of a client's window is kept for what comes unasked: while no more are free nothing is taken from
/// the client.
pub const CLIENT_WINDOW_FOR_REPORTS: usize = 4;

/// One in so many places of a client's window is kept for answers: while no more are free, orders are refused. A client that
/// was refused may have sent more before it knew.
pub const CLIENT_WINDOW_FOR_ANSWERS: usize = 2;

/// Journal bytes that one input and all its outputs may need: a mass cancel is cut into as many as fit. Reserved before
/// the order logic runs.
pub const JOURNAL_RESERVE_BYTES: usize = 64 << 10;

/// Bytes of messages that a FIX session keeps when they come before ones that are missing. They are handled in one input
/// once the gap is filled, so what they cause must find room in [`JOURNAL_RESERVE_BYTES`].
pub const EARLY_BYTES_A_SESSION: usize = 8 << 10;

/// Messages that are looked up in the journal at a time, for sessions that no longer hold what they are asked for.
pub const RECALL_PORTION: usize = 32;

/// Execution reports of one order that its client's buffer must have room for before the order is taken.
pub const REPORTS_RESERVED_AN_ORDER: usize = 2;

/// Longest execution report in FIX, bytes.
pub const MAX_REPORT_LENGTH: usize = 512;

/// Reports of one turn whose last tap is still to come. More than a turn makes are not recorded, and not held up either.
pub const REPORTS_HELD_A_TURN: usize = 1_024;

/// Free places that a ring of reports to another shard must have before an input is taken that may cause some.
pub const REPORTS_RESERVED_AN_INPUT: usize = 16;

/// Places in a ring of requests to another shard that requests leave free: for mass cancels and lost sessions that the
/// shard itself has to tell, which are never refused.
pub const NOTICES_RESERVED: usize = 64;

/// Places in a ring of requests to another shard that orders leave free beside those, for cancels.
pub const CANCELS_RESERVED: usize = 64;

/// Journal bytes that a cancel needs: its message, what goes to the venue, and the report of the order's end.
pub const CANCEL_JOURNAL_BYTES: usize = 3 * (MAX_REPORT_LENGTH + RECORD_OVERHEAD_BYTES);

/// Bytes that a record of the journal takes beyond the message in it, at most.
pub const RECORD_OVERHEAD_BYTES: usize = 64;

/// Longest file of a data dictionary, bytes. QuickFIX's longest has half a megabyte.
pub const MAX_DICTIONARY_BYTES: u64 = 16 << 20;

/// XML nodes of a data dictionary.
pub const MAX_DICTIONARY_NODES: u32 = 1 << 20;

/// Groups and components of a data dictionary inside one another. QuickFIX's FIX 5.0 SP2 has 11.
pub const MAX_DICTIONARY_DEPTH: usize = 32;

/// Fields of all messages of a data dictionary together, once components are in place. QuickFIX's
/// FIX 5.0 SP2 has 24,000.
pub const MAX_DICTIONARY_MEMBERS: usize = 1 << 18;

/// Questions of the control desk on their way to one shard.
pub const CONTROL_QUESTIONS: usize = 32;

/// Answers of one shard on their way to the control desk.
pub const CONTROL_ANSWERS: usize = 1_024;

/// Orders of operators that a shard remembers, to give them to a shard that a crash kept from hearing of them.
pub const CONTROL_ORDERS_REMEMBERED: usize = 16;

/// Limits that may differ from the config at a time, by operators' orders.
pub const MAX_CHANGED_LIMITS: usize = 4_096;

/// Days of the calendar from one trading day to the next one that an operator may begin. Days never go back, so a day that is
/// mistyped would stay.
pub const MAX_DAYS_AHEAD: i64 = 31;

/// Classes and instruments that a shard keeps closed to accounts and sessions at a time, each for each of them.
pub const MAX_RESTRICTIONS: u32 = 16_384;

/// Places for open orders, or scopes of limits, that one turn looks at for an operator's list.
pub const PLACES_LISTED_A_TURN: u32 = 64;

/// Longest request of an operator, bytes.
pub const MAX_CONTROL_REQUEST: usize = 4_096;

/// How long an operator has to say what he wants, and to take an answer's bytes, nanoseconds.
pub const CONTROL_TIMEOUT_NS: u64 = 2_000_000_000;

/// How long the control desk waits for a shard's next answer, nanoseconds.
pub const CONTROL_ANSWER_WAIT_NS: u64 = 5_000_000_000;
