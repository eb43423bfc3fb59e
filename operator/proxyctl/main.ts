import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { main } from './proxyctl.ts'

async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await lines.question(question)
  } finally {
    lines.close()
  }
}

// Without top-level await, which the CommonJS bundle of the executable cannot have.
void main(process.argv.slice(2), {
  env: process.env,
  isTerminal: process.stdout.isTTY,
  isErrorTerminal: process.stderr.isTTY,
  write: (line) => void process.stdout.write(line),
  writeError: (line) => void process.stderr.write(line),
  readInput: () => text(process.stdin),
  ...(process.stdin.isTTY && { ask }),
}).then((code) => {
  process.exitCode = code
})
