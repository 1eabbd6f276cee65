//! A session's hours: what the door tells, the session obeys, and a replay obeys again.

use crate::fix::{Logon, field};
use crate::fixture::{FIX, Fixture, START};
use gateway::replay;
use types::{Duration, ShardId};

#[test]
fn hours_end_with_a_logout_and_only_a_new_session_day_starts_at_1() {
    let mut fixture = Fixture::new();
    let tomorrow = START + Duration::from_secs(86_400);
    fixture.shard.hours(FIX, Some(START));
    let answer = fixture.fix(&Logon);
    assert_eq!((field(&answer[0], 35), field(&answer[0], 34)), (Some("A"), Some("1")));

    fixture.shard.hours(FIX, None);
    let told = fixture.fix_messages();
    assert_eq!(field(&told[0], 35), Some("5"), "{told:?}");
    assert_eq!(field(&told[0], 58), Some("outside the session's hours"));
    fixture.shard.disconnect(FIX);

    // The same day goes on, as after an interruption.
    fixture.shard.hours(FIX, Some(START));
    fixture.shard.connect(FIX);
    let answer = fixture.fix(&Logon);
    assert_eq!((field(&answer[0], 35), field(&answer[0], 34)), (Some("A"), Some("3")));

    // The next day begins while the client is there: it is logged out, and comes back to number 1.
    fixture.shard.hours(FIX, Some(tomorrow));
    let told = fixture.fix_messages();
    assert_eq!(field(&told[0], 58), Some("end of the session day"), "{told:?}");
    fixture.shard.disconnect(FIX);
    fixture.shard.connect(FIX);
    let answer = fixture.fix(&Logon);
    assert_eq!((field(&answer[0], 35), field(&answer[0], 34)), (Some("A"), Some("1")));
    assert_eq!(fixture.shard.shard().session_hours(FIX), Some(Some(tomorrow)));

    let (config, _folder) = fixture.stop();
    replay::verify(&config, ShardId(0)).expect("it replays");
}
