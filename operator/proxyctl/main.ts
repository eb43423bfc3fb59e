import { main } from './proxyctl.ts'

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  isTerminal: process.stdout.isTTY,
  write: (text) => void process.stdout.write(text),
  writeError: (text) => void process.stderr.write(text),
})
