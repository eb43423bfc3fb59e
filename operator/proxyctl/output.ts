import { styleText } from 'node:util'

/** Where the program prints. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Standard output is a terminal: colours are welcome. */
  readonly isTerminal: boolean
  write(text: string): void
  writeError(text: string): void
}

/** The command line is wrong. */
export class UsageError extends Error {}

export type Colour = 'red' | 'yellow' | 'green' | 'gray'

export interface Output {
  readonly isJson: boolean
  /** Prints `value` as JSON, or the lines of `text`. */
  print(value: unknown, text: () => readonly string[]): void
  paint(colour: Colour, text: string): string
}

export function createOutput(terminal: Terminal, format: 'text' | 'json'): Output {
  const hasColours = terminal.isTerminal && format === 'text' && (terminal.env['NO_COLOR'] ?? '') === ''
  return {
    isJson: format === 'json',
    print: (value, text) => terminal.write(format === 'json' ? `${JSON.stringify(value, null, 2)}\n` : [...text(), ''].join('\n')),
    paint: (colour, text) => (hasColours ? styleText(colour, text, { validateStream: false }) : text),
  }
}

/** Rows in columns, two spaces apart; the last column is as wide as it is. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  return rows.map((row) => row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join('  '))
}
