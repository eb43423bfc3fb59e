import type { MessageCode } from './code.ts'
import { configMessages } from './config-messages.ts'
import { dataplaneMessages } from './dataplane-messages.ts'
import { gatewayMessages } from './gateway-messages.ts'
import { manifestMessages } from './manifest-messages.ts'
import { operatorMessages } from './operator-messages.ts'
import { policyMessages } from './policy-messages.ts'
import { proxyctlMessages } from './proxyctl-messages.ts'
import { routeMessages } from './route-messages.ts'
import type { MessageEntry, MessageTable } from './types.ts'

export type { MessageEntry } from './types.ts'

/** Messages that one page of docs/reference/messages describes. */
export interface MessageArea {
  /** File name of the page, without extension. */
  readonly page: string
  readonly title: string
  readonly messages: MessageTable
}

export const messageAreas: readonly MessageArea[] = [
  { page: 'gateways', title: 'Gateways, listeners and deployment', messages: gatewayMessages },
  { page: 'routes', title: 'Routes and references to backends', messages: routeMessages },
  { page: 'policies', title: 'Policies and backends', messages: policyMessages },
  { page: 'manifests', title: 'Manifests', messages: manifestMessages },
  { page: 'config', title: 'Config files', messages: configMessages },
  { page: 'dataplane', title: 'Start and log of the data plane', messages: dataplaneMessages },
  { page: 'operator', title: 'Start and log of the operator', messages: operatorMessages },
  { page: 'proxyctl', title: 'Errors of proxyctl', messages: proxyctlMessages },
]

/** The entry of a code, and the path of its page with its anchor; undefined if there is no such code. */
export function findMessage(code: string): { readonly code: MessageCode; readonly entry: MessageEntry; readonly page: string } | undefined {
  for (const { page, messages } of messageAreas) {
    const entry = Object.hasOwn(messages, code) ? (messages as Readonly<Record<string, MessageEntry>>)[code] : undefined
    if (entry) return { code: code as MessageCode, entry, page: `docs/reference/messages/${page}.md#${code.toLowerCase()}` }
  }
  return undefined
}
