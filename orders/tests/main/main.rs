//! The order logic seen from outside: every reason, every race, and a naive model beside it.

mod book;
mod config;
mod control;
mod edges;
mod fixture;
mod late;
mod limits;
mod model;
mod races;
mod reasons;
mod restricted;
mod terms;
mod values;
