import type { Definitions } from '../schema.ts'
import { definitions as apiDefinitions } from '../v1alpha1/definitions.ts'
import { backendDefinitions } from './backend.ts'
import { fileDefinitions } from './file.ts'
import { listenerDefinitions } from './listener.ts'
import { mcpProgramDefinitions } from './mcp-program.ts'
import { policyDefinitions } from './policy.ts'
import { resolvedDefinitions, resolveReferences } from './resolved.ts'
import { routeDefinitions } from './route.ts'

/** All named definitions of the config contract, including the policy sections of the API with their references resolved. */
export const configDefinitions: Definitions = {
  ...resolveReferences({ ...apiDefinitions, ...mcpProgramDefinitions }),
  ...resolvedDefinitions,
  ...listenerDefinitions,
  ...routeDefinitions,
  ...backendDefinitions,
  ...policyDefinitions,
  ...fileDefinitions,
}
