//! Warnings about configured options, in one form: the option, the model with its problem, what happens.

pub(super) struct WarningList<'m> {
    model: &'m str,
    list: Vec<String>,
}

impl<'m> WarningList<'m> {
    /// Begins with what is known of the model itself.
    pub(super) fn new(model: &'m str, of_model: Option<&str>) -> Self {
        Self { model, list: of_model.iter().map(|warning| format!("`model`: {model} {warning}")).collect() }
    }

    pub(super) fn add(&mut self, option: &str, problem: &str, effect: &str) {
        self.list.push(format!("`{option}`: {} {problem}; {effect}", self.model));
    }

    pub(super) fn not_sent(&mut self, option: &str, is_set: bool, problem: &str) {
        if is_set {
            self.add(option, problem, "it is not sent");
        }
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}
