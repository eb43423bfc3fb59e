import { commands } from './commands.ts'
import { commonOptions, optionEntry, optionTable, type OptionName } from './options.ts'
import { UsageError } from './output.ts'
import type { Command, CommandEntry } from './types.ts'

/** Prints a completion script. All scripts are made from the tables of commands and options. */
export const runCompletion: Command = async ({ args, output }) => {
  const [shell = '', ...rest] = args
  const write = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (write === undefined || rest.length > 0) throw new UsageError('completion takes the name of a shell: bash, zsh or fish')
  output.print({ shell, script: `${write().join('\n')}\n` }, write)
  return Promise.resolve(0)
}

interface Choice {
  readonly word: string
  readonly text: string
}

/** Words that can follow each prefix of a command, such as '' and `config`, and the arguments of each command. */
function listWords(): Map<string, Choice[]> {
  const words = new Map<string, Choice[]>()
  const add = (prefix: string, choice: Choice): void => {
    const known = words.get(prefix) ?? []
    if (!known.some(({ word }) => word === choice.word)) words.set(prefix, [...known, choice])
  }
  for (const { name, summary, completes } of commands) {
    const [first = '', second] = name.split(' ')
    const others = commands.filter((each) => each.name.startsWith(`${first} `)).map((each) => each.name.slice(first.length + 1))
    add('', { word: first, text: second === undefined ? summary : others.join(', ') })
    if (second !== undefined) add(first, { word: second, text: summary })
    if (typeof completes === 'object') for (const word of completes) add(name, { word, text: word })
  }
  add('', { word: 'help', text: 'Prints the help of a command' })
  return words
}

const fileArguments = (): string[] => commands.filter(({ completes }) => completes === 'files').map(({ name }) => name)
const optionNames = Object.keys(optionTable) as OptionName[]
const formsOf = (name: OptionName): string[] => {
  const { short } = optionEntry(name)
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]
}
const optionsOf = ({ options = [] }: CommandEntry): OptionName[] => [...options, ...commonOptions]
const withValue = optionNames.filter((name) => optionEntry(name).type === 'string')
const joined = (names: readonly OptionName[]): string => names.flatMap(formsOf).join('|')

/** Lines of a `case` in which the value of the option before the cursor is completed. */
function valueCases(files: string, choices: (words: readonly string[]) => string): string[] {
  return withValue.map((name) => {
    const { completes } = optionEntry(name)
    const action = completes === 'files' ? files : completes === undefined ? ':' : choices(completes)
    return `    ${joined([name])}) ${action}; return ;;`
  })
}

function writeBash(): string[] {
  const words = (list: readonly string[]): string => `COMPREPLY=($(compgen -W "${list.join(' ')}" -- "$current"))`
  const files = 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current"))'
  return [
    '# bash completion for proxyctl; in ~/.bashrc: source <(proxyctl completion bash)',
    '_proxyctl() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" typed="" word index',
    '  COMPREPLY=()',
    '  if [[ $current == = ]]; then current=""; elif [[ $previous == = ]]; then previous="${COMP_WORDS[COMP_CWORD-2]}"; fi',
    '  for ((index = 1; index < COMP_CWORD; index++)); do',
    '    word="${COMP_WORDS[index]}"',
    '    case "$word" in',
    '      --) COMPREPLY=($(compgen -f -- "$current")); return ;;',
    `      ${joined(withValue)}) index=$((index + 1)); [[ \${COMP_WORDS[index]} == = ]] && index=$((index + 1)) ;;`,
    '      -*) ;;',
    '      *) typed="${typed:+$typed }$word" ;;',
    '    esac',
    '  done',
    '  case "$previous" in',
    ...valueCases(files, words),
    '  esac',
    '  if [[ $current == -* ]]; then',
    '    case "$typed" in',
    ...commands.map((entry) => `      "${entry.name}"*) ${words(optionsOf(entry).flatMap(formsOf))} ;;`),
    `      *) ${words(commonOptions.flatMap(formsOf))} ;;`,
    '    esac',
    '    return',
    '  fi',
    '  case "$typed" in',
    ...[...listWords()].map(([prefix, choices]) => `    "${prefix}") ${words(choices.map(({ word }) => word))} ;;`),
    ...fileArguments().map((name) => `    "${name}"*) ${files} ;;`),
    '  esac',
    '}',
    'complete -F _proxyctl proxyctl',
  ]
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

function writeZsh(): string[] {
  const described = (list: readonly Choice[]): string =>
    `choices=(${list.map(({ word, text }) => quote(`${word}:${text.replaceAll(':', '\\:')}`)).join(' ')}); _describe proxyctl choices`
  return [
    '#compdef proxyctl',
    '# zsh completion for proxyctl; in ~/.zshrc after compinit: source <(proxyctl completion zsh)',
    '_proxyctl() {',
    '  local current="${words[CURRENT]}" previous="${words[CURRENT-1]}" typed="" index',
    '  local -a choices',
    '  for ((index = 2; index < CURRENT; index++)); do',
    '    case "${words[index]}" in',
    '      --) _files; return ;;',
    `      ${joined(withValue)}) index=$((index + 1)) ;;`,
    '      -*) ;;',
    '      *) typed="${typed:+$typed }${words[index]}" ;;',
    '    esac',
    '  done',
    '  case "$previous" in',
    ...valueCases('_files', (list) => `compadd -- ${list.join(' ')}`),
    '  esac',
    '  if [[ "$current" == -* ]]; then',
    '    case "$typed" in',
    ...[...commands.map((entry) => [`"${entry.name}"*`, optionsOf(entry)] as const), ['*', commonOptions] as const].map(
      ([pattern, names]) => `      ${pattern}) ${described(names.map((name) => ({ word: `--${name}`, text: optionEntry(name).text })))} ;;`,
    ),
    '    esac',
    '    return',
    '  fi',
    '  case "$typed" in',
    ...[...listWords()].map(([prefix, choices]) => `    "${prefix}") ${described(choices)} ;;`),
    ...fileArguments().map((name) => `    "${name}"*) _files ;;`),
    '  esac',
    '}',
    'if [[ "$funcstack[1]" == _proxyctl ]]; then _proxyctl "$@"; else compdef _proxyctl proxyctl; fi',
  ]
}

function writeFish(): string[] {
  const short = (name: OptionName): string => {
    const { short: letter } = optionEntry(name)
    return letter === undefined ? '' : ` -s ${letter}`
  }
  return [
    '# fish completion for proxyctl: ~/.config/fish/completions/proxyctl.fish',
    'function __proxyctl_typed',
    '  set -l typed',
    '  set -l skip no',
    '  for word in (commandline -opc)[2..-1]',
    '    if test $skip = yes',
    '      set skip no',
    '      continue',
    '    end',
    '    switch $word',
    `      case ${withValue.flatMap(formsOf).join(' ')}`,
    '        set skip yes',
    "      case '-*'",
    "      case '*'",
    '        set -a typed $word',
    '    end',
    '  end',
    '  string join " " -- $typed',
    'end',
    'function __proxyctl_at',
    '  test "$(__proxyctl_typed)" = "$argv[1]"',
    'end',
    'function __proxyctl_in',
    '  string match -q -- "$argv[1]*" "$(__proxyctl_typed)"',
    'end',
    'complete -c proxyctl -f',
    ...[...listWords()].flatMap(([prefix, choices]) =>
      choices.map(({ word, text }) => `complete -c proxyctl -n ${quote(`__proxyctl_at "${prefix}"`)} -a ${word} -d ${quote(text)}`),
    ),
    ...fileArguments().map((name) => `complete -c proxyctl -n ${quote(`__proxyctl_in "${name}"`)} -F`),
    ...commands.flatMap((entry) =>
      optionsOf(entry).map((name) => {
        const { type, text, completes } = optionEntry(name)
        const values = completes === 'files' ? ' -r -F' : completes === undefined ? ' -x' : ` -x -a ${quote(completes.join(' '))}`
        return `complete -c proxyctl -n ${quote(`__proxyctl_in "${entry.name}"`)} -l ${name}${short(name)}${type === 'boolean' ? '' : values} -d ${quote(text)}`
      }),
    ),
  ]
}

const scripts: Readonly<Record<string, () => string[]>> = { bash: writeBash, zsh: writeZsh, fish: writeFish }
