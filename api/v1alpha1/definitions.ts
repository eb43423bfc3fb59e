import type { Definitions } from '../schema.ts'
import { backendSectionDefinitions } from './backend.ts'
import { aiBackendDefinitions } from './backends/ai.ts'
import { mcpBackendDefinitions } from './backends/mcp.ts'
import { plainBackendDefinitions } from './backends/static.ts'
import { frontendDefinitions } from './frontend.ts'
import { kindDefinitions } from './kinds.ts'
import { parametersDefinitions } from './parameters.ts'
import { aiDefinitions } from './policies/ai.ts'
import { apiKeyDefinitions } from './policies/api-key-authentication.ts'
import { authorizationDefinitions } from './policies/authorization.ts'
import { backendAuthDefinitions } from './policies/backend-auth.ts'
import { basicAuthDefinitions } from './policies/basic-authentication.ts'
import { connectionDefinitions } from './policies/connection.ts'
import { corsDefinitions } from './policies/cors.ts'
import { csrfDefinitions } from './policies/csrf.ts'
import { extAuthDefinitions } from './policies/ext-auth.ts'
import { extProcDefinitions } from './policies/ext-proc.ts'
import { forwardingDefinitions } from './policies/forwarding.ts'
import { headerDefinitions } from './policies/header-modifiers.ts'
import { healthDefinitions } from './policies/health.ts'
import { jwtDefinitions } from './policies/jwt-authentication.ts'
import { mcpDefinitions } from './policies/mcp.ts'
import { promptGuardDefinitions } from './policies/prompt-guard.ts'
import { rateLimitDefinitions } from './policies/rate-limit.ts'
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
