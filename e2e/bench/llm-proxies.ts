import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findFreePort, findFreePorts } from '../harness/program/ports.ts'
import { startProgram, type Program } from '../harness/program/program.ts'
import { waitUntil } from '../harness/wait.ts'
import type { Bench } from './bench.ts'
import { startLogging } from './logging-proxy.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A running LLM gateway. */
export interface LlmProxy {
  readonly pid: number
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/** Ports of one data plane, all with the same upstream: chat completions, the same with a guard on responses, the same with an edit, with one budget, with two budgets, and plain proxying. */
export interface OurPorts {
  readonly chat: number
  readonly guarded: number
  readonly edited: number
  readonly budget: number
  readonly budgets: number
  readonly plain: number
}

/** Starts the data plane, with a JSON access log in a file or without, and with more fields of `config`. */
export async function startOurs(
  bench: Bench,
  name: string,
  upstreamPort: number,
  hasLog: boolean,
  settings: object = {},
): Promise<{ pid: number; ports: OurPorts; stop(): Promise<void> }> {
  const [chat = 0, guarded = 0, edited = 0, budget = 0, budgets = 0, plain = 0] = await findFreePorts(6)
  const directory = join(bench.directory, `llm-${name}`)
  mkdirSync(directory, { recursive: true })
  const file = join(directory, 'config.json')
  const llm = (ai: object) => ({ ai: { provider: { providerA: {}, host: '127.0.0.1', port: upstreamPort } }, policies: { auth: { key: 'k' }, ai } })
  const bind = (port: number, backend: object, policies: object = {}) => ({
    port,
    addresses: ['127.0.0.1'],
    listeners: [{ name: `on-${port}`, routes: [{ name: `to-${port}`, policies, backends: [backend] }] }],
  })
  // No run exceeds these budgets.
  const person = { name: 'person', key: 'request.headers["x-person"]', onMissingKey: 'Ignore', limits: [{ tokens: 1e9, window: 'Day' }] }
  const all = { name: 'all', limits: [{ tokens: 1e9, window: 'Month' }] }
  const both = [all, { ...person, parent: 'all', limits: [...person.limits, { requests: 1e9, window: '1m' }] }]
  const config = {
    config: { logging: { format: 'json' }, ...settings },
    binds: [
      bind(chat, llm({ routes: { '*': 'Completions' } })),
      bind(guarded, llm({ promptGuard: { response: [{ regex: { builtins: ['Ssn', 'CreditCard', 'Email'], matches: ['project-[a-z]+'] } }] } })),
      bind(edited, llm({ defaults: [{ field: 'temperature', value: 0.5 }] })),
      bind(budget, llm({ routes: { '*': 'Completions' } }), { budgets: [person] }),
      bind(budgets, llm({ routes: { '*': 'Completions' } }), { budgets: both }),
      bind(plain, { host: `127.0.0.1:${upstreamPort}`, policies: { http: { version: 'HTTP1' } } }),
    ],
  }
  writeFileSync(file, JSON.stringify(config))
  // The data plane watches the directory of the config.
  const dataplane = await startLogging(bench, { file, log: join(bench.directory, `llm-${name}.log`), hasLog })
  return { pid: dataplane.program.pid, ports: { chat, guarded, edited, budget, budgets, plain }, stop: () => dataplane.stop() }
}

/** Starts Portkey's gateway (npm) or LiteLLM's (PyPI). Returns undefined and logs a line if the package cannot be installed. */
export async function startPeer(bench: Bench, name: 'portkey' | 'litellm'): Promise<LlmProxy | undefined> {
  try {
    return await startLlmPeer(bench, name)
  } catch (error) {
    bench.log(`  ${name} cannot be had: ${(error as Error).message.split('\n')[0]}`)
    return undefined
  }
}

/** Starts Portkey's gateway or LiteLLM's. Rejects if the package cannot be installed. */
export async function startLlmPeer(bench: Bench, name: 'portkey' | 'litellm'): Promise<LlmProxy> {
  await promisify(execFile)(join(root, 'e2e/suites/llm/install'), [name], { timeout: 600_000 })
  return name === 'portkey' ? startPortkey(bench) : startLitellm(bench)
}

async function startPortkey(bench: Bench): Promise<LlmProxy> {
  const port = await findFreePort()
  const entry = join(root, '.tools/portkey/node_modules/@portkey-ai/gateway/build/start-server.js')
  const args = ['-c', String(bench.proxyCpu), process.execPath, entry, '--headless', `--port=${port}`]
  const program = startProgram({ name: 'portkey', command: 'taskset', args, env: { TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost', NODE_ENV: 'production' } })
  await waitUntilServing(program, `http://127.0.0.1:${port}/`)
  const headers = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${bench.upstreamPort}/v1`, authorization: 'Bearer k' }
  return { pid: program.pid, port, headers, stop: async () => void (await program.stop(500)) }
}

async function startLitellm(bench: Bench): Promise<LlmProxy> {
  const port = await findFreePort()
  const directory = join(bench.directory, 'litellm')
  mkdirSync(directory, { recursive: true })
  const params = { model: 'openai/gpt-4o', api_key: 'k', api_base: `http://127.0.0.1:${bench.upstreamPort}/v1` }
  writeFileSync(
    join(directory, 'config.yaml'),
    JSON.stringify({ model_list: [{ model_name: 'gpt-4o', litellm_params: params }], litellm_settings: { telemetry: false } }),
  )
  const args = ['-c', String(bench.proxyCpu), join(root, '.tools/litellm/bin/litellm'), '--config', join(directory, 'config.yaml')]
  const program = startProgram({
    name: 'litellm',
    command: 'taskset',
    args: [...args, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'],
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true', LITELLM_LOG: 'ERROR' },
  })
  await waitUntilServing(program, `http://127.0.0.1:${port}/health/liveliness`)
  return { pid: program.pid, port, headers: { authorization: 'Bearer k' }, stop: async () => void (await program.stop(500)) }
}

function waitUntilServing(program: Program, url: string): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    if (program.hasExited()) throw new Error(`${program.name} ended: ${program.lines.at(-1)?.text ?? ''}`)
    return fetch(url).then(
      ({ status }) => status < 500,
      () => false,
    )
  }
  return waitUntil(program.name, isReady, 90_000)
}
