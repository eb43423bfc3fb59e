import { commands } from './commands.ts'
import { commonOptions, optionEntry, type OptionName } from './options.ts'
import type { CommandEntry } from './types.ts'

const WIDTH = 100

/** Help of the program: its commands. */
export function describeProgram(): string {
  const width = Math.max(...commands.map((entry) => usageOf(entry).length))
  return [
    'usage: proxyctl COMMAND [ARGUMENTS] [OPTIONS]',
    '',
    ...commands.flatMap((entry) => wrap(entry.summary, `  ${usageOf(entry).padEnd(width)}  `)),
    '',
    ...describeOptions(commonOptions),
    '',
    'proxyctl COMMAND --help shows the options and examples of a command.',
    'Exit status: 0 no problem, 1 a finding or a failure, 2 wrong usage.',
    '',
  ].join('\n')
}

/** Help of one command, or of all commands that begin with a word. */
export function describeCommands(entries: readonly CommandEntry[]): string {
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
