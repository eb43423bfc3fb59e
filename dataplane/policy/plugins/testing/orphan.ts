// Starts the process of a plugin that runs a loop, and prints its ID when the loop runs.
import { fileURLToPath } from 'node:url'
import { encodeFrame } from '../guest/frames.ts'
import { spawnLimited } from '../process-host.ts'

const child = spawnLimited(fileURLToPath(new URL('../guest/plugin-process.ts', import.meta.url)), 64)
child.stdin.write(encodeFrame({ code: `console.info('it runs')\nfor (;;);`, file: 'index.ts', config: undefined, secrets: {} }))
// The process writes to a pipe at once, so that the loop runs when this is read.
child.stdout.once('data', () => process.stdout.write(`${child.pid}\n`))
child.stderr.pipe(process.stderr)
