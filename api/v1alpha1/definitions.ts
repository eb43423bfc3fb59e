import type { Definitions } from '../schema.ts'
import { backendSectionDefinitions } from './backend.ts'
import { aiBackendDefinitions } from './backends/ai.ts'
import { mcpBackendDefinitions } from './backends/mcp.ts'
import { plainBackendDefinitions } from './backends/static.ts'
import { frontendDefinitions } from './frontend.ts'
import { kindDefinitions } from './kinds.ts'
import { parametersDefinitions } from './parameters.ts'
import { aiDefinitions } from './policies/ai.ts'
import { apiKeyDefinitions } from './policies/apikey.ts'
import { authorizationDefinitions } from './policies/authorization.ts'
import { backendAuthDefinitions } from './policies/backendauth.ts'
import { basicAuthDefinitions } from './policies/basicauth.ts'
import { connectionDefinitions } from './policies/connection.ts'
import { corsDefinitions } from './policies/cors.ts'
import { csrfDefinitions } from './policies/csrf.ts'
import { extAuthDefinitions } from './policies/extauth.ts'
import { extProcDefinitions } from './policies/extproc.ts'
import { forwardingDefinitions } from './policies/forwarding.ts'
import { headerDefinitions } from './policies/headers.ts'
import { healthDefinitions } from './policies/health.ts'
import { jwtDefinitions } from './policies/jwt.ts'
import { mcpDefinitions } from './policies/mcp.ts'
import { promptGuardDefinitions } from './policies/promptguard.ts'
import { rateLimitDefinitions } from './policies/ratelimit.ts'
import { transformationDefinitions } from './policies/transformation.ts'
import { policyDefinitions } from './policy.ts'
import { sharedDefinitions } from './shared.ts'
import { trafficDefinitions } from './traffic.ts'

/** Every named definition of the three kinds; the order is that of the reference pages. */
export const definitions: Definitions = {
  ...kindDefinitions,
  ...policyDefinitions,
  ...trafficDefinitions,
  ...transformationDefinitions,
  ...extProcDefinitions,
  ...extAuthDefinitions,
  ...rateLimitDefinitions,
  ...corsDefinitions,
  ...csrfDefinitions,
  ...headerDefinitions,
  ...forwardingDefinitions,
  ...authorizationDefinitions,
  ...jwtDefinitions,
  ...basicAuthDefinitions,
  ...apiKeyDefinitions,
  ...frontendDefinitions,
  ...backendSectionDefinitions,
  ...connectionDefinitions,
  ...backendAuthDefinitions,
  ...healthDefinitions,
  ...aiDefinitions,
  ...promptGuardDefinitions,
  ...mcpDefinitions,
  ...aiBackendDefinitions,
  ...mcpBackendDefinitions,
  ...plainBackendDefinitions,
  ...parametersDefinitions,
  ...sharedDefinitions,
}
