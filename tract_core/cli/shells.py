"""How each shell asks what to offer when the user presses Tab, and how it is answered.

Click's own scripts lose what stands before an equals sign, and know words only that are complete: a folder's name and a
symbol, as ``B=``, go on. These here hand over the words as they were typed; the last one is the one to complete.
An answer is one line per offer: how it goes on, the whole word, and what it is, with tabulators between. Bash quotes
paths only: in other words there is nothing that a shell would take for more than a letter.

==== ==============================================================
kind meaning
==== ==============================================================
word a complete word: a space follows
open a word that goes on, as ``B=`` or ``folder/``: no space follows
path a file
any  the shell offers its own files
==== ==============================================================
"""

from __future__ import annotations

import os
from typing import Any, Final

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

_KINDS: Final = {"plain": "word", "file": "any", "dir": "any"}
"""What click calls the kinds of its own offers."""

_END: Final = "\x01"
"""Put behind an unfinished line, so that its last word is found, also when it is empty."""

BASH: Final = r"""
%(complete_func)s() {
    local kind value about
    COMPREPLY=()
    while IFS=$'\t' read -r kind value about; do
        case $kind in
            word) COMPREPLY+=("$value") ;;
            open) COMPREPLY+=("$value"); compopt -o nospace ;;
            path) COMPREPLY+=("$value"); compopt -o filenames ;;
            any) compopt -o bashdefault -o default ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

ZSH: Final = r"""#compdef %(prog_name)s
%(complete_func)s() {
    local line
    local -a fields words_ opens paths about_words about_opens
    (( $+commands[%(prog_name)s] )) || return 1
    for line in "${(@f)$(COMP_LINE="${(pj:\n:)${(@Q)words[1,CURRENT]}}"$'\n' \
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}"; do
        fields=("${(@ps:\t:)line}")
        case $fields[1] in
            word) words_+=("$fields[2]"); about_words+=("${fields[2]}${fields[3]:+  -- $fields[3]}") ;;
            open) opens+=("$fields[2]"); about_opens+=("${fields[2]}${fields[3]:+  -- $fields[3]}") ;;
            path) paths+=("$fields[2]") ;;
            any) _files ;;
        esac
    done
    (( $#words_ )) && compadd -U -l -V words -d about_words -a words_
    (( $#opens )) && compadd -U -S '' -V opens -d about_opens -a opens
    (( $#paths )) && compadd -U -f -V paths -a paths
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

FISH: Final = r"""function %(complete_func)s
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l bare (string unescape -- "$last"); or set bare "$last"
    set -a words "$bare"
    for line in (env COMP_LINE=(printf '%%s\n' $words | string collect -N) \
        %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
        set -l fields (string split \t -- $line)
        switch $fields[1]
            case any
                __fish_complete_path $fields[2]
            case '*'
                printf '%%s\t%%s\n' $fields[2] "$fields[3]"
        end
    end
end
complete --no-files --keep-order --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Words(ShellComplete):
    """What the shells have in common."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words behind the command's name, and the one to complete."""
        *words, incomplete = os.environ["COMP_LINE"].split("\n")[1:-1] or [""]
        return words, incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        """What is offered, as whole words: behind ``--flag=`` too."""
        items = super().get_completions(args, incomplete)
        flag, equals, _ = incomplete.partition("=")
        if equals and flag.startswith("--"):
            for item in items:
                item.value = f"{flag}={item.value}"
        return items

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """One line; what would break it is left out."""
        fields = _KINDS.get(item.type, item.type), item.value, item.help or ""
        return "\t".join(" ".join(str(field).split("\n")).replace("\t", " ") for field in fields)


class Bash(_Words, BashComplete):
    """Bash breaks words at equals signs and colons: of an offer it wants what comes after the last of them."""

    source_template = BASH
    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words of the line up to the cursor, as the shell would read them."""
        _, *words = split_arg_string(os.environ["COMP_LINE"] + _END)
        *args, incomplete = words or [_END]
        incomplete = incomplete.removesuffix(_END)
        broken = os.environ.get("COMP_WORD", "")
        last = "" if broken in ("=", ":") else split_arg_string(broken + _END)[0].removesuffix(_END)
        self._typed = incomplete[: len(incomplete) - len(last)] if incomplete.endswith(last) else ""
        return args, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Without what stands before the last break. Bash itself puts the slash behind a folder."""
        item.value = str(item.value).removeprefix(self._typed)
        if item.type == "open" and item.value.endswith("/"):
            item.type, item.value = "path", item.value[:-1]
        return super().format_completion(item)


class Zsh(_Words, ZshComplete):
    """Zsh hands over words without their quotes."""

    source_template = ZSH


class Fish(_Words, FishComplete):
    """Fish hands over words without their quotes."""

    source_template = FISH


def register() -> None:
    """Let these answer in place of click's own."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)
