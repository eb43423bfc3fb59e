import { posix } from 'node:path'
import { listFiles, readText } from '../docs/tree.ts'
import { longestKey, type Entry, type Table } from './table.ts'

const START = 'May import: '

/** Text of each README of a directory in the table, its line `May import: …` as the table says. */
export function* renderReadmes(table: Table): Iterable<{ readonly path: string; readonly text: string; readonly expected: string }> {
  for (const path of listFiles('**/README.md')) {
    const directory = posix.dirname(path)
    const entry = table.directories[directory]
    if (entry === undefined) continue
    const text = readText(path)
    yield { path, text, expected: withLine(text, describe(directory, entry, table)) }
  }
}

function describe(directory: string, entry: Entry, table: Table): string {
  const below = Object.keys(table.directories).filter((key) => key !== directory && longestKey([directory], key) !== undefined)
  const quote = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')
  const parts = [
    ...((entry.imports ?? []).length > 0 ? [quote(entry.imports ?? [])] : []),
    ...((entry.types ?? []).length > 0 ? [`types of ${quote(entry.types ?? [])}`] : []),
    ...((entry.packages ?? []).length > 0 ? [`packages ${quote(entry.packages ?? [])}`] : []),
  ]
  const nothing = below.length > 0 ? 'see the directories below it' : 'nothing of the repository'
  return `${START}${parts.length > 0 ? parts.join('; ') : nothing}${entry.pure === true ? '. Pure: no clock, randomness, environment or I/O' : ''}.`
}

function withLine(text: string, line: string): string {
  const lines = text.split('\n')
  const at = lines.findIndex((one) => one.startsWith(START))
  if (at === -1) return `${text.trimEnd()}\n\n${line}\n`
  lines[at] = line
  return lines.join('\n')
}
