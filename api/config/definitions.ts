import type { Definitions } from '../schema.ts'
import { definitions as apiDefinitions } from '../v1alpha1/definitions.ts'
import { backendDefinitions } from './backend.ts'
import { fileDefinitions } from './file.ts'
import { listenerDefinitions } from './listener.ts'
import { policyDefinitions } from './policy.ts'
import { resolvedDefinitions, resolveReferences } from './resolved.ts'
import { routeDefinitions } from './route.ts'

/** All named definitions of the config contract, including the policy sections of the API with their references resolved. */
export const configDefinitions: Definitions = {
  ...resolveReferences(apiDefinitions),
  ...resolvedDefinitions,
  ...listenerDefinitions,
  ...routeDefinitions,
  ...backendDefinitions,
  ...policyDefinitions,
  ...fileDefinitions,
}

/** Message kinds of the stream: kind -> definition. `service` is sent as an Address, all others as Resources. */
export const messageKinds = {
  bind: 'Bind',
  listener: 'Listener',
  route: 'Route',
  tcpRoute: 'TcpRoute',
  backend: 'Backend',
  policy: 'Policy',
  secret: 'Secret',
  service: 'Service',
} as const

/** Kind of a message of the config stream. */
export type MessageKind = keyof typeof messageKinds
