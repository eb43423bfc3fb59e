// Runs with the permissions of a plugin, and does what one would do that found a way around the import hook and the removed globals. Prints what succeeded.
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { lookup } from 'node:dns/promises'
import { Session } from 'node:inspector'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { limitProcess } from '../guest/limit-process.ts'

limitProcess(Number(process.argv[2]))

const connecting = (): Promise<void> =>
  new Promise((resolve, reject) => {
    connect(80, '127.0.0.1').on('connect', resolve).on('error', reject)
  })
const listening = (): Promise<void> =>
  new Promise((resolve, reject) => {
    // A server that may not listen throws in a later turn.
    process.once('uncaughtException', reject)
    createServer().on('error', reject).listen(0, '127.0.0.1', resolve)
  })

const attempts: Readonly<Record<string, () => unknown>> = {
  environment: () => readFileSync('/proc/self/environ'),
  'file of the system': () => readFileSync('/etc/passwd'),
  'file of the program': () => readFileSync(fileURLToPath(import.meta.url)),
  'writing a file': () => writeFileSync('/tmp/escaped', ''),
  'child process': () => spawn('/bin/true'),
  'worker thread': () => new Worker('', { eval: true }),
  connection: connecting,
  server: listening,
  'name lookup': () => lookup('localhost'),
  fetch: () => fetch('http://127.0.0.1/'),
  addon: () => process.dlopen({ exports: {} }, '/tmp/escaped.node'),
  inspector: () => new Session().connect(),
}

const DENIED: ReadonlySet<string | undefined> = new Set(['ERR_ACCESS_DENIED', 'ERR_DLOPEN_DISABLED'])
const denied: string[] = []
const others: string[] = []
for (const [name, attempt] of Object.entries(attempts))
  try {
    await attempt()
    others.push(`${name}: succeeded`)
  } catch (error) {
    const { code, cause } = error as { code?: string; cause?: { code?: string } }
    if (DENIED.has(code ?? cause?.code)) denied.push(name)
    else others.push(`${name}: ${String(error)}`)
  }
// Node itself may need the path of its libraries.
const environment = Object.keys(process.env).filter((name) => name !== 'LD_LIBRARY_PATH')
process.stdout.write(JSON.stringify({ denied, others, attempts: Object.keys(attempts), environment }), () => process.exit())
