//! What a config may not say, and what its parts take from each other.

use crate::fixture::*;
use orders::{
    AccountLimits, Collar, ConfigError, Limit, LimitError, LimitValue, Orders, OrdersConfig, RateAction, RateLimit,
    Route, RouteKey, SelfMatch,
};
use types::{AccountId, Duration, InstrumentId, LimitClass, Notional, Price, Quantity, Reason, SessionId, VenueId};

#[test]
fn a_config_that_contradicts_itself_does_not_start() {
    type Change = fn(&mut OrdersConfig);
    let cases: [(Change, ConfigError); 24] = [
        (|config| config.capacity.open_orders = 0, ConfigError::Capacity),
        (|config| config.capacity.positions = u32::MAX, ConfigError::Capacity),
        (
            |config| config.instruments[1].id = ALPHA,
            ConfigError::DuplicateInstrument(ALPHA),
        ),
        (
            |config| config.instruments[0].tick_size = Price(0),
            ConfigError::InvalidInstrument(ALPHA),
        ),
        (
            |config| config.instruments[0].lot_size = 0,
            ConfigError::InvalidInstrument(ALPHA),
        ),
        (
            |config| config.instruments[0].limit_class = LimitClass(2),
            ConfigError::UnknownClass(ALPHA, LimitClass(2)),
        ),
        (
            |config| config.instruments[0].venue = VenueId(2),
            ConfigError::UnknownVenue(VenueId(2)),
        ),
        (
            |config| config.classes[0].max_quantity = Quantity(0),
            ConfigError::InvalidInstrumentLimit(ALPHA),
        ),
        (
            |config| config.classes[0].max_quantity = Quantity(1 << 32),
            ConfigError::InvalidInstrumentLimit(ALPHA),
        ),
        (
            |config| config.classes[1].max_notional = Notional(i128::MAX),
            ConfigError::InvalidInstrumentLimit(BETA),
        ),
        (
            |config| {
                config.classes[0].collar = Some(Collar {
                    basis_points: None,
                    ticks: None,
                });
            },
            ConfigError::InvalidInstrumentLimit(ALPHA),
        ),
        (
            |config| {
                let own = (InstrumentId(1), Limit::MaxQuantity, LimitValue::Count(1));
                config.overrides.push(own);
            },
            ConfigError::UnknownInstrument(InstrumentId(1)),
        ),
        (
            |config| {
                let own = (ALPHA, Limit::MaxQuantity, LimitValue::Count(0));
                config.overrides.push(own);
            },
            ConfigError::Override(ALPHA, Limit::MaxQuantity, LimitError::Invalid),
        ),
        (
            |config| config.accounts[1].id = SHARED,
            ConfigError::DuplicateAccount(SHARED),
        ),
        (
            |config| config.accounts[0].limits.max_open_orders = 0,
            ConfigError::InvalidAccountLimit(SHARED),
        ),
        (
            |config| config.accounts[0].limits.max_position = Some(Quantity(0)),
            ConfigError::InvalidAccountLimit(SHARED),
        ),
        (
            |config| {
                config.sessions[1].limits.rate = RateLimit {
                    per_second: Some(0),
                    at_once: Some(1),
                    action: Some(RateAction::Reject),
                };
            },
            ConfigError::InvalidSessionLimit(SESSIONS[1]),
        ),
        (
            |config| config.sessions[1].id = SESSIONS[0],
            ConfigError::DuplicateSession(SESSIONS[0]),
        ),
        (
            |config| config.sessions[1].id = SessionId(0),
            ConfigError::DuplicateSession(SessionId(0)),
        ),
        (
            |config| config.sessions[1].limits.max_open_orders = 0,
            ConfigError::InvalidSessionLimit(SESSIONS[1]),
        ),
        (
            |config| config.sessions[0].accounts[0] = AccountId(1),
            ConfigError::UnknownAccount(AccountId(1)),
        ),
        (
            |config| config.sessions[0].accounts[0] = PLAIN,
            ConfigError::RepeatedAccount(SESSIONS[0], PLAIN),
        ),
        (
            |config| config.routes[0].venue = VenueId(2),
            ConfigError::UnknownVenue(VenueId(2)),
        ),
        (
            |config| config.routes[1] = config.routes[0],
            ConfigError::DuplicateRoute(RouteKey::Instrument(BETA)),
        ),
    ];
    for (change, error) in cases {
        let mut config = config();
        change(&mut config);
        assert_eq!(Orders::new(&config).err(), Some(error));
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn an_override_takes_the_place_of_the_class() {
    let mut config = config();
    config.overrides.push((ALPHA, Limit::MaxQuantity, LimitValue::Count(3)));
    config.accounts[1].limits = AccountLimits {
        max_quantity: Quantity(100),
        ..config.accounts[1].limits
    };
    let mut orders = up(Orders::new(&config).unwrap());
    assert_eq!(
        enter(&mut orders, &new_order(1), &REFERENCE).err(),
        Some(Reason::MaxQuantity)
    );
}

#[test]
fn a_session_that_may_have_to_wait_has_a_time_and_a_place() {
    for (wait, places, is_right) in [(0, 1, false), (1, 0, false), (1, 1, true)] {
        let mut config = config();
        config.sessions[2].self_match = SelfMatch::CancelOldest;
        config.own_cancel_wait = Duration::from_millis(wait);
        config.capacity.waiting_orders = places;
        let error = Orders::new(&config).err();
        assert_eq!(error, (!is_right).then_some(ConfigError::NoWaiting(SESSIONS[2])));
    }
}

#[test]
fn decrement_is_for_sessions_whose_orders_go_only_to_venues_that_have_it() {
    // Session 4 goes to venue 1 with everything; session 3 to both, by instrument; an account may have a route of its own.
    let by_account = |account| {
        Some(Route {
            key: RouteKey::Account(account),
            venue: VenueId(1),
        })
    };
    for (session, route, lacking) in [
        (3, None, None),
        (2, None, Some(VenueId(0))),
        (1, None, Some(VenueId(0))),
        (1, by_account(PLAIN), None),
        (1, by_account(SHARED), Some(VenueId(0))),
    ] {
        let mut config = config();
        config.venues[0].decrements = false;
        config.sessions[session].self_match = SelfMatch::Decrement;
        config.routes.extend(route);
        let expected = lacking.map(|venue| ConfigError::NoDecrement(SESSIONS[session], venue));
        assert_eq!(Orders::new(&config).err(), expected, "{session} {route:?}");
    }
}
