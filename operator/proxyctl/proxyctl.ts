import { parseArgs } from 'node:util'
import { createOutput, UsageError, type Terminal } from './output.ts'
import { runConfig } from './config.ts'
import { runExplain } from './explain.ts'
import { runLint } from './lint.ts'
import { runLog } from './log.ts'
import { runStatus } from './status.ts'
import { runTrace } from './trace.ts'
import type { Command, Invocation } from './types.ts'

const USAGE = `usage: proxyctl COMMAND [ARGUMENTS] [OPTIONS]

  status                 all resources of the gateway, the worst condition first
  explain ROUTE          every policy field in force for a route (<namespace>/<name>), where it comes from, what it overrides
  trace [URL]            the steps of one request: sends it to URL, or waits for the next that fits
  config dump            the config that a data plane has in force
  config diff FROM [TO]  the difference between two of: a dump file, a data plane (host:port), a directory of manifests
  log level [LEVEL]      shows or sets a data plane's log level: debug, or module=debug,…
  lint DIR|FILE          checks manifests or a config file without a cluster; fails when one is wrong

Where to look:
  --admin HOST:PORT      the admin endpoint of a data plane (a standalone gateway prints it)
  --gateway NS/NAME      a Gateway on the cluster: one of its pods is reached through the API server
                         default: the Gateway of the route, or the only one of the cluster; without a cluster 127.0.0.1:15000
  --kubeconfig FILE      default KUBECONFIG (several as in kubectl), else ~/.kube/config
  --dir DIR              for status: a directory of manifests instead of a cluster
  -n, --namespace NS     for status: one namespace; for config diff: the namespace of manifests without one

For trace:
  --path PREFIX, --host HOST, --method METHOD    which request to wait for
  --header 'NAME: VALUE'                         of the request that is sent; repeatable
  --timeout DURATION                             how long to wait (default 30s)

  -o, --output text|json                         default text
  -h, --help
`

const commands: Readonly<Record<string, Command>> = {
  status: runStatus,
  explain: runExplain,
  trace: runTrace,
  config: runConfig,
  log: runLog,
  lint: runLint,
}

const options = {
  admin: { type: 'string' },
  gateway: { type: 'string' },
  kubeconfig: { type: 'string' },
  dir: { type: 'string' },
  namespace: { type: 'string', short: 'n' },
  path: { type: 'string' },
  host: { type: 'string' },
  method: { type: 'string' },
  header: { type: 'string', multiple: true },
  timeout: { type: 'string' },
  output: { type: 'string', short: 'o', default: 'text' },
  help: { type: 'boolean', short: 'h' },
} as const

/** Runs the command line. Resolves with the exit status: 0 all is well, 1 something is wrong (a finding or a failure), 2 wrong usage. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const { values, positionals } = parse(args)
    const [name = '', ...rest] = positionals
    if (values.help === true || name === 'help') {
      terminal.write(USAGE)
      return 0
    }
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command === undefined) throw new UsageError(name === '' ? 'no command' : `${JSON.stringify(name)} is not a command`)
    const { output, ...given } = values
    if (output !== 'text' && output !== 'json') throw new UsageError(`--output: ${JSON.stringify(output)} is neither text nor json`)
    const invocation: Invocation = { args: rest, options: given, env: terminal.env, output: createOutput(terminal, output) }
    return await command(invocation)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    terminal.writeError(`proxyctl: ${message}${error instanceof UsageError ? '; proxyctl --help shows the usage' : ''}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

function parse(args: readonly string[]): ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
