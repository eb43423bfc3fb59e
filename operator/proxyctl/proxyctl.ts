import { withCode, type MessageCode } from '#api/messages/code.ts'
import { parseArgs } from 'node:util'
import { suggest } from '#api/suggest.ts'
import { commands, findCommand } from './commands.ts'
import { commonOptions, formats, optionEntry, optionTable, type Format, type OptionName } from './options.ts'
import { CommandError, createOutput, UsageError, type Terminal } from './output.ts'
import type { CommandEntry, Options } from './types.ts'

/** Runs the command line. Resolves with the exit status: 0 all is well, 1 something is wrong (a finding or a failure), 2 wrong usage, or a comparison that failed. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  let help = 'proxyctl --help'
  let failure = 1
  try {
    const separator = args.indexOf('--')
    const { values, positionals } = parse(separator < 0 ? args : args.slice(0, separator))
    const isHelp = values.help === true || positionals[0] === 'help'
    const names = positionals[0] === 'help' ? positionals.slice(1) : positionals
    if (isHelp) {
      terminal.write(names.length === 0 ? describeProgram() : describeCommands(findEntries(names)))
      return 0
    }
    const found = findCommand(names)
    if (found === undefined) throw unknownCommand(names)
    const { entry, words } = found
    help = `proxyctl ${entry.name} --help`
    if (entry.isComparison === true) failure = 2
    const rest = separator < 0 ? [] : args.slice(separator + 1)
    const isRunner = entry.arguments?.includes('--') === true
    const { output: format = 'text', help: _, ...options } = values
    checkOptions(entry, values)
    const run = await entry.load()
    return await run({
      args: [...names.slice(words), ...(isRunner ? [] : rest)],
      program: isRunner ? rest : [],
      options,
      env: terminal.env,
      output: await createOutput(terminal, parseFormat(format, entry)),
      readInput: () => terminal.readInput(),
      ask: terminal.ask,
    })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const text = error instanceof UsageError ? `${message}; ${help} shows the usage` : message
    terminal.writeError(`proxyctl: ${withCode(text, codeOf(error))}\n`)
    return error instanceof UsageError ? 2 : failure
  }
}

const codeOf = (error: unknown): MessageCode => (error instanceof UsageError ? 'PX6001' : error instanceof CommandError ? error.code : 'PX6002')

type Values = Options & { readonly output?: string | undefined; readonly help?: boolean | undefined }

function parse(args: readonly string[]): { values: Values; positionals: string[] } {
  try {
    return parseArgs({ args: [...args], options: optionTable, allowPositionals: true })
  } catch (error) {
    const { message } = error as Error
    const [, unknown] = /^Unknown option '--([^']*)'/.exec(message) ?? []
    if (unknown === undefined) throw new UsageError(message)
    throw new UsageError(`Unknown option '--${unknown}'${hint(unknown, Object.keys(optionTable), '--')}`)
  }
}

const hint = (text: string, words: readonly string[], prefix = ''): string => {
  const word = suggest(text, words)
  return word === undefined ? '' : `; did you mean ${prefix}${word}?`
}

function parseFormat(text: string, { formats: extra = [] }: CommandEntry): Format {
  const known: readonly Format[] = [...formats, ...extra]
  const format = known.find((each) => each === text)
  if (format === undefined) throw new UsageError(`--output: ${JSON.stringify(text)} is not one of ${known.join(', ')}`)
  return format
}

function checkOptions({ name, options = [] }: CommandEntry, values: Values): void {
  const known: readonly OptionName[] = [...options, ...commonOptions]
  const extra = (Object.keys(values) as OptionName[]).find((option) => !known.includes(option))
  if (extra !== undefined) throw new UsageError(`--${extra} is not an option of ${name}, which takes ${known.map((option) => `--${option}`).join(', ')}`)
}

/** Commands whose name begins with the words. */
function findEntries(names: readonly string[]): CommandEntry[] {
  const found = findCommand(names)
  if (found) return [found.entry]
  const entries = commands.filter(({ name }) => name.startsWith(`${names[0]} `))
  if (entries.length === 0 || names.length > 1) throw unknownCommand(names)
  return entries
}

function unknownCommand([first = '', second]: readonly string[]): UsageError {
  if (first === '') return new UsageError('no command')
  const inner = commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []))
  if (inner.length > 0)
    return new UsageError(
      `${first} takes ${inner.join(' or ')}${second === undefined ? '' : `; ${JSON.stringify(second)} is not one of them${hint(second, inner)}`}`,
    )
  const words = commands.map(({ name }) => name.split(' ')[0] ?? '')
  return new UsageError(`${JSON.stringify(first)} is not a command${hint(first, words)}`)
}

/** Width of the help in columns. */
const WIDTH = 100

/** Help of the program: its commands. */
function describeProgram(): string {
  const width = Math.max(...commands.map((entry) => usageOf(entry).length))
  return [
    'usage: proxyctl COMMAND [ARGUMENTS] [OPTIONS]',
    '',
    ...commands.flatMap((entry) => wrap(entry.summary, `  ${usageOf(entry).padEnd(width)}  `)),
    '',
    ...describeOptions(commonOptions),
    '',
    'proxyctl COMMAND --help shows the options and examples of a command.',
    'Exit status: 0 no problem, 1 a finding or a failure, 2 wrong usage, or a failure of a comparison (diff, config diff, mcp diff).',
    '',
  ].join('\n')
}

/** Help of one command, or of all commands that begin with a word. */
function describeCommands(entries: readonly CommandEntry[]): string {
  return entries.map(describeCommand).join('\n')
}

function describeCommand(entry: CommandEntry): string {
  const text = [`${entry.summary}.`, entry.details].filter((part) => part !== undefined).join(' ')
  return [
    `usage: proxyctl ${usageOf(entry)} [OPTIONS]`,
    '',
    ...wrap(text, ''),
    '',
    'Examples:',
    ...entry.examples.flatMap(([purpose, line]) => [`  # ${purpose}`, `  ${line}`]),
    '',
    'Options:',
    ...describeOptions([...(entry.options ?? []), ...commonOptions]),
    '',
  ].join('\n')
}

const usageOf = ({ name, arguments: positionals }: CommandEntry): string => (positionals === undefined ? name : `${name} ${positionals}`)

function describeOptions(names: readonly OptionName[]): string[] {
  const forms = names.map((name) => {
    const { short, value } = optionEntry(name)
    return `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
  })
  const width = Math.max(...forms.map((form) => form.length))
  return names.flatMap((name, index) => wrap(optionEntry(name).text, `  ${(forms[index] ?? '').padEnd(width)}  `))
}

/** Lines of at most `WIDTH` characters; the first starts with `head`, the others are indented as far. */
function wrap(text: string, head: string): string[] {
  const lines: string[] = []
  let line = head
  for (const word of text.split(' ')) {
    if (line.length + word.length >= WIDTH && line.length > head.length) {
      lines.push(line.trimEnd())
      line = ' '.repeat(head.length)
    }
    line += `${word} `
  }
  return [...lines, line.trimEnd()]
}
