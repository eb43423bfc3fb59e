import { readFileSync } from 'node:fs'
import type { Command } from './process.ts'

/** An MCP server in plain JavaScript, for `node -e`. Each tool has the name of what it does. */
const SCRIPT = `
const { spawn } = require('node:child_process')
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const tools = {
  pid: () => String(process.pid),
  env: () => JSON.stringify(Object.keys(process.env).sort()),
  child: () => String(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' }).pid),
  echo: ({ text }) => text,
  announce: () => (send({ method: 'notifications/tools/list_changed' }), 'done'),
  crash: () => process.exit(3),
  flood: () => (process.stdout.write('x'.repeat(17 * 1024 * 1024)), new Promise(() => {})),
  log: () => (process.stderr.write('first line\\nsecond'), 'done'),
  noise: () => (process.stdout.write('no message\\n\\n'), 'done'),
}
process.on('SIGTERM', () => {})
if (process.env.STUBBORN) setInterval(() => {}, 1e6)
let rest = ''
process.stdin.on('data', async (chunk) => {
  const lines = (rest + chunk).split('\\n')
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    if (method === 'initialize')
      send(process.env.REJECT ? { id, error: { code: -32000, message: 'no' } } : { id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'script', version: '1' } } })
    else if (method === 'tools/list') send({ id, result: { tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) } })
    else if (method === 'tools/call') {
      const text = await tools[params.name](params.arguments ?? {})
      send({ id, result: { content: [{ type: 'text', text }] } })
    } else send({ id, error: { code: -32601, message: 'Method not found' } })
  }
})
`

/** Node on a machine where its libraries are elsewhere. */
const libraries: Readonly<Record<string, string>> = process.env['LD_LIBRARY_PATH'] === undefined ? {} : { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }

/** The command of a test server. */
export const scriptCommand = (env: Readonly<Record<string, string>> = {}): Command => ({
  command: [process.execPath, '-e', SCRIPT],
  env: { ...libraries, ...env },
})

/** Whether a process runs. Zombies do not. */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
