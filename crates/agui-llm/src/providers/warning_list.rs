//! Warnings about configured options, in one form: the option, the model with its problem, the
//! effect.

use crate::ModelOptions;

pub(super) struct WarningList<'m> {
    options: &'m ModelOptions,
    pub(super) list: Vec<String>,
}

impl<'m> WarningList<'m> {
    /// Creates a list that begins with the known problem of the model itself.
    pub(super) fn new(options: &'m ModelOptions, model_problem: Option<&str>) -> Self {
        let list = model_problem
            .iter()
            .map(|warning| format!("`model`: {} {warning}", options.model))
            .collect();
        Self { options, list }
    }

    pub(super) fn add(&mut self, option: &str, problem: &str, effect: &str) {
        self.list.push(format!("`{option}`: {} {problem}; {effect}", self.options.model));
    }

    /// Warns about each of these options that is set.
    pub(super) fn not_sent(&mut self, options: &[&str], problem: &str) {
        for (option, _) in options
            .iter()
            .filter_map(|name| self.options.option(name))
            .filter(|(_, is_set)| *is_set)
        {
            self.add(option, problem, "it is not sent");
        }
    }
}
