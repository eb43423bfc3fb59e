import { anyJson, atLeastOneOf, choice, list, map, object, ref, type Definitions } from '../../schema.ts'
import { audiences, jwtMode } from './jwt-authentication.ts'
import { bothValues } from '../real-names.ts'

export const mcpDefinitions: Definitions = {
  BackendMCP: object(
    'MCP settings; only for backends of type mcp.',
    {
      authorization: ref(
        'Authorization',
        'Authorization of each tool, prompt and resource (`mcp.tool.name`, `mcp.tool.target`, and so on): lists omit those that are not allowed, and calls of them are rejected as unknown. Rules of all levels apply together.',
      ),
      authentication: ref('MCPAuthentication'),
      toolGuards: ref('McpToolGuards'),
    },
    [],
    [atLeastOneOf('authorization', 'authentication', 'toolGuards')],
  ),
  McpToolGuards: object(
    'Checks of the arguments and results of tools, with the guards of `ai.promptGuard`. Each list runs in order. A rejected call has a result with `isError` and the message of the guard; `statusCode` is not used. The most specific level applies; that of a target replaces that of the backend.',
    {
      input: list(ref('PromptguardRequest'), 'Checks of the arguments. A call that is rejected does not reach the server.', 1, 8),
      output: list(ref('PromptguardRequest'), 'Checks of the result, and of an error of the server.', 1, 8),
    },
    [],
    [atLeastOneOf('input', 'output')],
  ),
  MCPAuthentication: object(
    'MCP OAuth: clients without a valid token receive the location of the authorization server. The proxy serves the discovery documents and registers clients with the identity provider on their behalf.',
    {
      resourceMetadata: map(
        anyJson('Any JSON value.'),
        'Members of the protected resource metadata document (RFC 9728), for example `scopesSupported`; they take precedence over computed ones.',
      ),
      provider: choice(
        bothValues('MCPAuthentication', 'provider', 'IdpKind1', 'IdpKind2'),
        'Kind of identity provider whose metadata needs adapting. auth0 (IdpKind1), or keycloak (IdpKind2). Not set: one that follows the standards.',
      ),
      issuer: ref('ShortString', 'Required value of the `iss` claim; also the location of the metadata of the identity provider.'),
      audiences,
      jwks: ref('RemoteJWKS'),
      mode: jwtMode,
    },
    ['jwks'],
  ),
}
