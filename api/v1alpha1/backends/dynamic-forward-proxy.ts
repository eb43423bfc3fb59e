import { object, type Definitions } from '../../schema.ts'

export const dynamicForwardProxyDefinitions: Definitions = {
  DynamicForwardProxyBackend: object(
    'Sends each request to the host that its Host header names (for TLS traffic, its SNI). Any destination can be reached, so access controls must be put in place.',
    {},
  ),
}
