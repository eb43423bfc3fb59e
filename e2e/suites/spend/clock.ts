// Loaded before a program (`node --import`), also in its threads: wall clock time is shifted by the milliseconds in the file CLOCK_FILE. Timers are not changed.
// Each thread writes the shift that is in force to a file of the directory `<file>.read`.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'

const file = process.env['CLOCK_FILE']
const now = Date.now
const directory = `${file}.read`
let offsetMs = Number.NaN

function read(): void {
  const text = file === undefined ? '' : readFileSync(file, 'utf8')
  // A file that is being replaced is empty for a moment.
  if (text === '' || Number(text) === offsetMs) return
  offsetMs = Number(text)
  writeFileSync(`${directory}/${threadId}`, text)
}

class ShiftedDate extends Date {
  constructor(...args: readonly unknown[]) {
    super(...((args.length === 0 ? [now() + offsetMs] : args) as [number]))
  }

  static override now(): number {
    return now() + offsetMs
  }
}

mkdirSync(directory, { recursive: true })
read()
process.on('exit', () => rmSync(`${directory}/${threadId}`))
setInterval(read, 50).unref()
globalThis.Date = ShiftedDate as DateConstructor
