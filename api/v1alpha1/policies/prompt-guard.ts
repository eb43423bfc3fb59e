import { atLeastOneOf, choice, integer, list, object, ref, string, type Definitions } from '../../schema.ts'
import { exactlyOneOfNames, withRealNames } from '../real-names.ts'

const region = (what: string) => ref('ShortString', what)

export const promptGuardDefinitions: Definitions = {
  AIPromptGuard: object(
    'Checks of prompts and responses. Each list runs in order; the first rejection ends the request.',
    {
      request: list(ref('PromptguardRequest'), 'Checks of the prompt.', 1, 8),
      response: list(ref('PromptguardResponse'), 'Checks of the response.', 1, 8),
    },
    [],
    [atLeastOneOf('request', 'response')],
  ),
  PromptguardRequest: object(
    'One check of the prompt: exactly one of regex, webhook, openAIModeration, bedrockGuardrails, googleModelArmor, or of their neutral names. A service that cannot be reached rejects the request.',
    withRealNames('PromptguardRequest', {
      regex: ref('Regex'),
      webhook: ref('Webhook'),
      moderationApi: ref('ModerationAPI'),
      cloudGuardrails: ref('CloudGuardrails'),
      modelArmor: ref('ModelArmor'),
      response: ref('CustomResponse', 'Response to rejected requests. Default message: The request was rejected due to inappropriate content.'),
    }),
    [],
    [exactlyOneOfNames('PromptguardRequest', 'regex', 'webhook', 'moderationApi', 'cloudGuardrails', 'modelArmor')],
  ),
  PromptguardResponse: object(
    'One check of the response: exactly one of regex, webhook, bedrockGuardrails, googleModelArmor, or of their neutral names. A service that cannot be reached rejects the response.',
    withRealNames('PromptguardResponse', {
      regex: ref('Regex'),
      webhook: ref('Webhook'),
      cloudGuardrails: ref('CloudGuardrails'),
      modelArmor: ref('ModelArmor'),
      response: ref('CustomResponse', 'Replacement of rejected responses. Default message: The response was rejected due to inappropriate content.'),
    }),
    [],
    [exactlyOneOfNames('PromptguardResponse', 'regex', 'webhook', 'cloudGuardrails', 'modelArmor')],
  ),
  CustomResponse: object(
    'Response to the client if content is rejected.',
    { message: string('Body.'), statusCode: integer('Status code.', 200, 599, { default: 403 }) },
    [],
    [atLeastOneOf('message', 'statusCode')],
  ),
  Regex: object(
    'Searches for patterns: those of `matches` and of `builtins`.',
    {
      matches: list(
        ref('LongString', 'Pattern, RE2 syntax.'),
        'Custom patterns. One that does not compile is reported in the status and rejects everything.',
        1,
      ),
      builtins: list(
        choice(
          ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'],
          'Ssn: US social security number. CreditCard: card number with valid check digit. CaSin: Canadian social insurance number.',
        ),
        'Predefined patterns.',
        1,
      ),
      action: choice(
        ['Mask', 'Reject'],
        'Action on a match in a prompt, or in arguments and results of tools. Mask replaces the text, Reject rejects the request. Matches in responses of models are always masked.',
        { default: 'Mask' },
      ),
    },
    [],
    [atLeastOneOf('matches', 'builtins')],
  ),
  Webhook: object(
    'Calls a webhook over HTTP.',
    {
      backendRef: ref('BackendObjectReference', 'The service: a Service or a ProxyBackend.'),
      forwardHeaderMatches: list(
        ref('HTTPHeaderMatch'),
        'Request headers to send to the webhook: those that match one of these. Default: none.',
        undefined,
        64,
      ),
    },
    ['backendRef'],
  ),
  ModerationAPI: object('Calls the moderation endpoint of OpenAI.', {
    model: string('Moderation model. Default: omni-moderation-latest.'),
    policies: ref('BackendSimple', 'Connection to the service; `auth` with key or secretRef is needed.'),
  }),
  CloudGuardrails: object(
    'Calls Amazon Bedrock Guardrails.',
    {
      identifier: ref('ShortString', 'Identifier of the guardrail.'),
      version: ref('ShortString', 'Version of the guardrail.'),
      region: region('AWS region.'),
      policies: ref('BackendSimple', 'Connection to the service; `auth` with aws, key or secretRef.'),
    },
    ['identifier', 'version', 'region'],
  ),
  ModelArmor: object(
    'Calls Google Model Armor.',
    {
      templateId: ref('ShortString', 'Id of the template.'),
      projectId: ref('ShortString', 'Google Cloud project.'),
      location: { ...region('Location of the template.'), default: 'us-central1' },
      policies: ref('BackendSimple', 'Connection to the service; `auth` with gcp.'),
    },
    ['templateId', 'projectId'],
  ),
}
