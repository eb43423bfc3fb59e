import { exactlyOneOf, object, ref, string, type Definitions } from '../../schema.ts'
import { port } from '../shared.ts'

/** Backends that are not interpreted: a fixed host, the host of the request, a cloud service. */
export const plainBackendDefinitions: Definitions = {
  StaticBackend: object('One fixed destination.', { host: ref('ShortString', 'Host name or IP address.'), port: port('Port.') }, ['host', 'port']),
  DynamicForwardProxyBackend: object(
    'Sends each request to the host that its Host header names (for TLS traffic, its SNI). Any destination can be reached, so access controls must be put in place.',
    {},
  ),
  CloudBackend: object('A cloud service: exactly one of agentRuntime.', { agentRuntime: ref('AgentRuntime') }, [], [exactlyOneOf('agentRuntime')]),
  AgentRuntime: object(
    'An agent hosted on Amazon Bedrock AgentCore. Requests are passed on uninterpreted and signed with `policies.auth.cloudA`, or the credentials of the environment.',
    {
      agentRuntimeRef: string('ARN of the runtime, `arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>`.', { minLength: 1, maxLength: 2048 }),
      qualifier: string('Alias or version of the runtime.', { maxLength: 256 }),
    },
    ['agentRuntimeRef'],
  ),
}
