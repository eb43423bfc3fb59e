import { atLeastOneOf, choice, exactlyOneOf, integer, list, object, ref, string, type Definitions } from '../../schema.ts'

const region = (what: string) => ref('ShortString', what)

export const promptGuardDefinitions: Definitions = {
  AIPromptGuard: object(
    'Checks of prompts and answers, each list in order; the first that rejects ends the request.',
    {
      request: list(ref('PromptguardRequest'), 'Checks of the prompt.', 1, 8),
      response: list(ref('PromptguardResponse'), 'Checks of the answer.', 1, 8),
    },
    [],
    [atLeastOneOf('request', 'response')],
  ),
  PromptguardRequest: object(
    'One check of the prompt: exactly one of regex, webhook, moderationApi, cloudGuardrails, modelArmor. A service that cannot be reached rejects the request.',
    {
      regex: ref('Regex'),
      webhook: ref('Webhook'),
      moderationApi: ref('ModerationAPI'),
      cloudGuardrails: ref('CloudGuardrails'),
      modelArmor: ref('ModelArmor'),
      response: ref('CustomResponse', 'Response to rejected requests. Default message: The request was rejected due to inappropriate content.'),
    },
    [],
    [exactlyOneOf('regex', 'webhook', 'moderationApi', 'cloudGuardrails', 'modelArmor')],
  ),
  PromptguardResponse: object(
    'One check of the answer: exactly one of regex, webhook, cloudGuardrails, modelArmor. A service that cannot be reached rejects the answer.',
    {
      regex: ref('Regex'),
      webhook: ref('Webhook'),
      cloudGuardrails: ref('CloudGuardrails'),
      modelArmor: ref('ModelArmor'),
      response: ref('CustomResponse', 'Response in place of rejected answers. Default message: The response was rejected due to inappropriate content.'),
    },
    [],
    [exactlyOneOf('regex', 'webhook', 'cloudGuardrails', 'modelArmor')],
  ),
  CustomResponse: object(
    'What the client gets when content is rejected.',
    { message: string('Body.'), statusCode: integer('Status code.', 200, 599, { default: 403 }) },
    [],
    [atLeastOneOf('message', 'statusCode')],
  ),
  Regex: object(
    'Looks for patterns; `matches` and `builtins` add up.',
    {
      matches: list(ref('LongString', 'Pattern, RE2 syntax.'), 'Own patterns. One that does not compile is reported in the status and rejects everything.', 1),
      builtins: list(
        choice(
          ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'],
          'Ssn: US social security number. CreditCard: card number with valid check digit. CaSin: Canadian social insurance number.',
        ),
        'Ready-made patterns.',
        1,
      ),
      action: choice(
        ['Mask', 'Reject'],
        'What happens on a match in a prompt: Mask replaces the text, Reject rejects the request. Matches in answers are always masked.',
        { default: 'Mask' },
      ),
    },
    [],
    [atLeastOneOf('matches', 'builtins')],
  ),
  Webhook: object(
    'Asks an own service over HTTP.',
    {
      backendRef: ref('BackendObjectReference', 'The service: a Service or a ProxyBackend.'),
      forwardHeaderMatches: list(ref('HTTPHeaderMatch'), 'Request headers to send along: those that any of these matches. Default: none.', undefined, 64),
    },
    ['backendRef'],
  ),
  ModerationAPI: object('Asks the moderation endpoint of OpenAI.', {
    model: string('Moderation model. Default: omni-moderation-latest.'),
    policies: ref('BackendSimple', 'How to reach it; `auth` with key or secretRef is needed.'),
  }),
  CloudGuardrails: object(
    'Asks Amazon Bedrock Guardrails.',
    {
      identifier: ref('ShortString', 'Identifier of the guardrail.'),
      version: ref('ShortString', 'Version of the guardrail.'),
      region: region('AWS region.'),
      policies: ref('BackendSimple', 'How to reach it; `auth` with cloudA, key or secretRef.'),
    },
    ['identifier', 'version', 'region'],
  ),
  ModelArmor: object(
    'Asks Google Model Armor.',
    {
      templateId: ref('ShortString', 'Id of the template.'),
      projectId: ref('ShortString', 'Google Cloud project.'),
      location: { ...region('Location of the template.'), default: 'us-central1' },
      policies: ref('BackendSimple', 'How to reach it; `auth` with cloudC.'),
    },
    ['templateId', 'projectId'],
  ),
}
