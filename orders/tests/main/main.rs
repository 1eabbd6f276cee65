//! The order logic seen from outside: every reason, every race, and a naive model beside it.

mod control;
mod fixture;
mod model;
mod races;
mod reasons;
mod terms;
