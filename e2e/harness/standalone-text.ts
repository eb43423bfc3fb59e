import { join } from 'node:path'
import type { ManagementPorts } from './program/dataplane.ts'
import type { Example, UpstreamSpec } from './example/example.ts'
import type { GatewaySummary, ListenerSummary, OperatorEvent, Place } from './program/operator.ts'

/** The line of `make run` for an upstream. */
export function describeUpstream(spec: UpstreamSpec): string {
  return `upstream   ${spec.name.padEnd(18)} ${(spec.kind ?? 'http').padEnd(5)} 127.0.0.1:${spec.port}`
}

/** The line of `make run` for a Gateway. */
export function describeGateway(gateway: GatewaySummary): string {
  return [`gateway    ${gateway.namespace}/${gateway.name}`, ...gateway.listeners.map((listener) => describeListener(listener))].join('\n')
}

/** The line of `make run` for the management ports. */
export function describeManagement(ports: ManagementPorts): string {
  return [
    `console    http://127.0.0.1:${ports.admin}/`,
    `management http://127.0.0.1:${ports.admin}/config_dump`,
    `           http://127.0.0.1:${ports.stats}/metrics`,
    `           http://127.0.0.1:${ports.readiness}/healthz/ready`,
  ].join('\n')
}

/** The commands of an example with their titles; `{dir}` is replaced by the directory. */
export function describeCommands(example: Example, directory: string): string {
  return (example.commands ?? []).map(({ title, command }) => `  # ${title}\n  ${command.replaceAll('{dir}', directory)}`).join('\n')
}

/**
 * The text that a user sees for an event; undefined for events that only tests use, and for conditions that follow from another one.
 *
 * @param directory of the manifests, as the user would type it: editors and terminals open `file:line:column`
 */
export function describeEvent(event: OperatorEvent, directory: string): string | undefined {
  switch (event.event) {
    case 'error':
      return `error      ${describePlace(event, directory)}${event.message}`
    case 'warning':
      return `warning    ${describePlace(event, directory)}${event.kind} ${event.namespace}/${event.name}: ${event.message}`
    case 'solved':
      return `solved     ${event.problem}`
    case 'condition':
      return event.isConsequence === true
        ? undefined
        : `problem    ${describePlace(event, directory)}${event.kind} ${event.namespace}/${event.name}: ${event.type}=${event.status} (${event.reason}) ${event.message}`
    case 'listening':
    case 'config':
      return undefined
  }
}

function describePlace({ file, line, column }: Place, directory: string): string {
  if (file === undefined) return ''
  return `${[join(directory, file), line, column].filter((part) => part !== undefined).join(':')}: `
}

function describeListener(listener: ListenerSummary): string {
  const host = listener.hostname ?? '*'
  const routes = listener.routes === undefined ? '' : `  ${listener.routes} route rule${listener.routes === 1 ? '' : 's'}`
  return `           ${listener.name.padEnd(18)} ${listener.protocol.padEnd(5)} port ${listener.port}  host ${host}${routes}`
}
