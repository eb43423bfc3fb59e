import type { MessageCode } from '#api/messages/code.ts'
import { styleText } from 'node:util'
import type { Format } from './options.ts'

/** Where the program reads and prints. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Standard output is a terminal: colours are welcome. */
  readonly isTerminal: boolean
  /** Standard error is a terminal: progress can be shown. */
  readonly isErrorTerminal?: boolean
  write(text: string): void
  writeError(text: string): void
  /** Reads standard input to its end. */
  readInput(): Promise<string>
  /** Asks a question on the terminal; absent: standard input is not one. */
  readonly ask?: (question: string) => Promise<string>
}

/** The command line is wrong. */
export class UsageError extends Error {}

/** A failure that the user can correct. */
export class CommandError extends Error {
  readonly code: MessageCode

  constructor(code: MessageCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export type Colour = 'red' | 'yellow' | 'green' | 'gray'

export interface Output {
  /** Tables have their additional columns. */
  readonly isWide: boolean
  /** The text is printed as CSV. */
  readonly isCsv: boolean
  /** Prints `value` as JSON or YAML, or the lines of `text`. */
  print(value: unknown, text: () => readonly string[]): void
  paint(colour: Colour, text: string): string
  /** Prints text that another program made. */
  write(text: string): void
  /** Prints to standard error. */
  note(text: string): void
  /** Shows `text` on standard error, if that is a terminal, until `work` settles. */
  wait<T>(text: string, work: Promise<T>): Promise<T>
}

/** Time before progress is shown, so that fast commands do not flicker. */
const PROGRESS_DELAY_MS = 300
const FRAME_MS = 100
const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const
const CLEAR_LINE = '\r\u001b[K'

export async function createOutput(terminal: Terminal, format: Format): Promise<Output> {
  const hasColours = terminal.isTerminal && (format === 'text' || format === 'wide') && (terminal.env['NO_COLOR'] ?? '') === ''
  const toYaml = format === 'yaml' ? (await import('yaml')).stringify : undefined
  const render = (value: unknown, text: () => readonly string[]): string => {
    if (toYaml) return toYaml(value, { lineWidth: 0, aliasDuplicateObjects: false })
    return format === 'json' ? `${JSON.stringify(value, null, 2)}\n` : [...text(), ''].join('\n')
  }
  return {
    isWide: format === 'wide',
    isCsv: format === 'csv',
    print: (value, text) => terminal.write(render(value, text)),
    paint: (colour, text) => (hasColours ? styleText(colour, text, { validateStream: false }) : text),
    write: (text) => terminal.write(text),
    note: (text) => terminal.writeError(text),
    wait: (text, work) => (terminal.isErrorTerminal === true ? showProgress(terminal, text, work) : work),
  }
}

async function showProgress<T>(terminal: Terminal, text: string, work: Promise<T>): Promise<T> {
  let [shown, frame] = [false, 0]
  const draw = (): void => {
    shown = true
    terminal.writeError(`${CLEAR_LINE}${frames[frame++ % frames.length] ?? ''} ${text}`)
  }
  let interval: NodeJS.Timeout | undefined
  const delay = setTimeout(() => {
    draw()
    interval = setInterval(draw, FRAME_MS)
  }, PROGRESS_DELAY_MS)
  try {
    return await work
  } finally {
    clearTimeout(delay)
    clearInterval(interval)
    if (shown) terminal.writeError(CLEAR_LINE)
  }
}

/** Rows in columns, two spaces apart; the last column is as wide as it is. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  return rows.map((row) => row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join('  '))
}
