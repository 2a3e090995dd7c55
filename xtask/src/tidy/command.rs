//! That continuous integration runs what the README tells a newcomer to run.

use super::{Check, Offence, Tree};

pub(super) const CHECK: Check = Check {
    name: "command",
    why: "the README's test command is the one that continuous integration proves daily",
    find,
};

const MARK: &str = "<!-- test command -->";
const SCRIPT: &str = ".ci/run";

fn find(tree: &Tree) -> Vec<Offence> {
    let Some(readme) = tree.file("README.md") else {
        println!("tidy: command: skipped, there is no README.md yet");
        return Vec::new();
    };
    let mut lines = readme.text.lines().enumerate().skip_while(|(_, line)| line.trim() != MARK);
    let marked =
        [lines.next(), lines.next(), lines.next()].map(|line| line.map(|(index, line)| (index + 1, line.trim())));
    let [_, Some((_, fence)), Some((number, command))] = marked else {
        let remedy = format!("put {MARK} on the line above the code fence of the test command");
        return vec![readme.offence(1, "the test command is not marked", remedy)];
    };
    let command = command.strip_prefix("$ ").unwrap_or(command);
    let runs = |line: &str| line.trim().trim_start_matches("exec ") == command;
    if !fence.starts_with("```") || command.is_empty() || command.starts_with("```") {
        let remedy = format!("put the code fence directly below {MARK}, and the command in its first line");
        vec![readme.offence(number, "no command below the mark", remedy)]
    } else if !tree.file(SCRIPT).is_some_and(|script| script.text.lines().any(runs)) {
        vec![readme.offence(number, format!("{SCRIPT} does not run `{command}`"), format!("make {SCRIPT} run it"))]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const README: &str = "# Title\n\n<!-- test command -->\n```sh\ncargo xtask ci\n```\n";

    #[test]
    fn the_script_runs_the_command() {
        assert!(found(&CHECK, &[("README.md", README), (SCRIPT, "#!/bin/sh\nexec cargo xtask ci\n")]).is_empty());
        assert!(found(&CHECK, &[(SCRIPT, "")]).is_empty());
    }

    #[test]
    fn other_commands_and_missing_marks_are_found() {
        assert_eq!(found(&CHECK, &[("README.md", README), (SCRIPT, "# cargo xtask ci\n")]), ["README.md:5"]);
        assert_eq!(found(&CHECK, &[("README.md", README)]), ["README.md:5"]);
        assert_eq!(found(&CHECK, &[("README.md", "```sh\ncargo test\n```\n")]), ["README.md:1"]);
        let gap = README.replace("-->\n", "-->\n\n");
        assert_eq!(found(&CHECK, &[("README.md", &gap), (SCRIPT, "cargo xtask ci\n")]), ["README.md:5"]);
    }
}
