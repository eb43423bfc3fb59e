import { object, ref, string, type Definitions } from '../../schema.ts'
import { exactlyOneOfNames, withRealNames } from '../real-names.ts'

export const cloudBackendDefinitions: Definitions = {
  CloudBackend: object(
    'A cloud service: exactly one of agentCore and its neutral name agentRuntime.',
    withRealNames('CloudBackend', { agentRuntime: ref('AgentRuntime') }),
    [],
    [exactlyOneOfNames('CloudBackend', 'agentRuntime')],
  ),
  AgentRuntime: object(
    'An agent hosted on Amazon Bedrock AgentCore. Requests are forwarded unchanged, signed with `policies.auth.aws`, or the credentials of the environment.',
    {
      agentRuntimeRef: string('ARN of the runtime, `arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>`.', { minLength: 1, maxLength: 2048 }),
      qualifier: string('Alias or version of the runtime.', { maxLength: 256 }),
    },
    ['agentRuntimeRef'],
  ),
}
