import { BRIDGE_CONFIG } from '#api/bridge.ts'
import { SettingError } from './program/settings.ts'
import { LogLevelError } from './observe/telemetry/log.ts'
import { redactText } from './observe/telemetry/redact.ts'
import { withCode } from '#api/messages/code.ts'
import { parseArgs } from 'node:util'
import packageJson from '../package.json' with { type: 'json' }
import { runDataplane } from './program/dataplane.ts'
import { checkDataplane } from './program/dry-run.ts'
import { ConfigFileError } from './config/file/problem.ts'

const USAGE = `usage: proxy-service run FILE | check FILE
       dataplane [-f FILE] [--dry-run]

  run FILE         start a gateway with a config file (YAML), whose edits are applied while it runs
  check FILE       check the file and the environment, print the ports, and exit
  -f, --file FILE  as \`run FILE\`; with XDS_ADDRESS set, the listeners of the file are added to those of the stream
  --dry-run        as \`check FILE\`
  --bridge         take no settings from the environment, which is that of an MCP server
  --install-bridge DIR
                   copy Node, this program and the config in ${BRIDGE_CONFIG} to DIR, and exit (docs/guide/mcp-servers.md)
  --version        print the version

Environment: XDS_ADDRESS, NAMESPACE, GATEWAY, ADMIN_ADDR, ADMIN_TOKEN, STATS_ADDR, READINESS_ADDR, PROXY_LOG, WORKERS (docs/guide/management-endpoints.md)
`

const COMMANDS = ['run', 'check']

/** Path of the config file of a command, if there is a command. */
function readCommand([command, path, ...rest]: readonly string[], file: string | undefined): string | undefined {
  if (command === undefined) return file
  if (!COMMANDS.includes(command)) throw new SettingError(`${JSON.stringify(command)} is no command; use one of ${COMMANDS.join(', ')}, or --help`)
  if (path === undefined && file === undefined) throw new SettingError(`${command} names no config file; use ${command} FILE, such as ${command} gateway.yaml`)
  const [more] = file === undefined ? rest : [path]
  if (more !== undefined) throw new SettingError(`${JSON.stringify(more)} is a second config file; ${command} takes one`)
  return path ?? file
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      file: { type: 'string', short: 'f' },
      'dry-run': { type: 'boolean' },
      bridge: { type: 'boolean' },
      'install-bridge': { type: 'string' },
      version: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const { version, help, bridge: isBridge, 'install-bridge': bridgeDirectory } = values
  if (version === true || help === true) {
    process.stdout.write(help === true ? USAGE : `${packageJson.version}\n`)
    return
  }
  const file = readCommand(positionals, values.file)
  if (values['dry-run'] === true || positionals[0] === 'check') {
    process.stdout.write(await checkDataplane({ env: process.env, file, version: packageJson.version }))
    return
  }
  if (bridgeDirectory !== undefined) {
    const { installBridge } = await import('./program/bridge/install.ts')
    return installBridge(bridgeDirectory, import.meta.dirname, process.env[BRIDGE_CONFIG] ?? '')
  }
  // Kubernetes sets the variable in every pod.
  const { KUBERNETES_SERVICE_HOST } = process.env
  const env = isBridge === true ? { KUBERNETES_SERVICE_HOST } : process.env
  const dataplane = await runDataplane({ env, file, version: packageJson.version })
  const stop = (signal: string): void => {
    dataplane.drain(signal).then(
      () => process.exit(0),
      () => process.exit(1),
    )
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  // The end of a terminal ends the process. A service manager asks for a reload.
  process.on('SIGHUP', (signal) => (process.stdin.isTTY ? stop(signal) : dataplane.reload()))
}

try {
  await main()
} catch (error) {
  const lines =
    error instanceof ConfigFileError
      ? error.problems
      : [
          withCode(
            error instanceof Error ? error.message : String(error),
            error instanceof SettingError || error instanceof LogLevelError ? 'PX4001' : 'PX4002',
          ),
        ]
  // Users type a command, pods the options.
  const program = /^-|^$/.test(process.argv[2] ?? '') ? 'dataplane' : 'proxy-service'
  for (const line of lines) process.stderr.write(`${program}: ${redactText(line)}\n`)
  process.exit(1)
}
