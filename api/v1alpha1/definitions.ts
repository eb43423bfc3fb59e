import type { Definitions } from '../schema.ts'
import { backendSectionDefinitions } from './backend.ts'
import { aiBackendDefinitions } from './backends/ai.ts'
import { cloudBackendDefinitions } from './backends/cloud-backend.ts'
import { dynamicForwardProxyDefinitions } from './backends/dynamic-forward-proxy.ts'
import { loadBalancerDefinitions } from './load-balancer.ts'
import { mcpBackendDefinitions } from './backends/mcp.ts'
import { staticBackendDefinitions } from './backends/static.ts'
import { faultInjectionDefinitions } from './fault-injection.ts'
import { frontendDefinitions } from './frontend.ts'
import { httpCacheDefinitions } from './http-cache.ts'
import { kindDefinitions } from './kinds.ts'
import { parametersDefinitions } from './parameters.ts'
import { aiDefinitions } from './policies/ai.ts'
import { apiKeyAuthenticationDefinitions } from './policies/api-key-authentication.ts'
import { authorizationDefinitions } from './policies/authorization.ts'
import { backendAuthDefinitions } from './policies/backend-auth.ts'
import { backendHttpDefinitions } from './policies/backend-http.ts'
import { backendTcpDefinitions } from './policies/backend-tcp.ts'
import { backendTlsDefinitions } from './policies/backend-tls.ts'
import { backendTunnelDefinitions } from './policies/backend-tunnel.ts'
import { basicAuthenticationDefinitions } from './policies/basic-authentication.ts'
import { bodyDefinitions } from './bodies.ts'
import { compressionDefinitions } from './compression.ts'
import { corsDefinitions } from './policies/cors.ts'
import { csrfDefinitions } from './policies/csrf.ts'
import { directResponseDefinitions } from './policies/direct-response.ts'
import { extAuthDefinitions } from './policies/ext-auth.ts'
import { extProcDefinitions } from './policies/ext-proc.ts'
import { headerModifiersDefinitions } from './policies/header-modifiers.ts'
import { healthDefinitions } from './policies/health.ts'
import { hostRewriteDefinitions } from './policies/host-rewrite.ts'
import { ipAllowListDefinitions } from './policies/ip-allow-list.ts'
import { jwtAuthenticationDefinitions } from './policies/jwt-authentication.ts'
import { mcpDefinitions } from './policies/mcp.ts'
import { pluginDefinitions } from './plugins.ts'
import { promptGuardDefinitions } from './policies/prompt-guard.ts'
import { budgetDefinitions } from './budgets.ts'
import { rateLimitDefinitions } from './policies/rate-limit.ts'
import { retryDefinitions } from './policies/retry.ts'
import { timeoutsDefinitions } from './policies/timeouts.ts'
import { transformationDefinitions } from './policies/transformation.ts'
import { oidcDefinitions } from './oidc.ts'
import { policyDefinitions } from './policy.ts'
import { responseOverrideDefinitions } from './response-override.ts'
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
  ...pluginDefinitions,
  ...budgetDefinitions,
  ...rateLimitDefinitions,
  ...corsDefinitions,
  ...csrfDefinitions,
  ...ipAllowListDefinitions,
  ...bodyDefinitions,
  ...compressionDefinitions,
  ...responseOverrideDefinitions,
  ...headerModifiersDefinitions,
  ...hostRewriteDefinitions,
  ...timeoutsDefinitions,
  ...retryDefinitions,
  ...faultInjectionDefinitions,
  ...httpCacheDefinitions,
  ...directResponseDefinitions,
  ...authorizationDefinitions,
  ...jwtAuthenticationDefinitions,
  ...basicAuthenticationDefinitions,
  ...apiKeyAuthenticationDefinitions,
  ...oidcDefinitions,
  ...frontendDefinitions,
  ...backendSectionDefinitions,
  ...backendTcpDefinitions,
  ...backendHttpDefinitions,
  ...backendTunnelDefinitions,
  ...backendTlsDefinitions,
  ...backendAuthDefinitions,
  ...healthDefinitions,
  ...loadBalancerDefinitions,
  ...aiDefinitions,
  ...promptGuardDefinitions,
  ...mcpDefinitions,
  ...aiBackendDefinitions,
  ...mcpBackendDefinitions,
  ...staticBackendDefinitions,
  ...dynamicForwardProxyDefinitions,
  ...cloudBackendDefinitions,
  ...parametersDefinitions,
  ...sharedDefinitions,
}
