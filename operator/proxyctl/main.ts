import { text } from 'node:stream/consumers'
import { main } from './proxyctl.ts'

// Without top-level await, which the CommonJS bundle of the executable cannot have.
void main(process.argv.slice(2), {
  env: process.env,
  isTerminal: process.stdout.isTTY,
  isErrorTerminal: process.stderr.isTTY,
  write: (line) => void process.stdout.write(line),
  writeError: (line) => void process.stderr.write(line),
  readInput: () => text(process.stdin),
}).then((code) => {
  process.exitCode = code
})
