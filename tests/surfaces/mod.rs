//! Surfaces that agents draw.

mod a2ui;
