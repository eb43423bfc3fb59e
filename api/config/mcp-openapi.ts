import { ref, type Definitions, type Schema } from '../schema.ts'
import { boolean, list, object, string } from './shared.ts'

const oneOf = (values: readonly string[], description: string): Schema => ({ type: 'string', enum: values, description })
const styles = ['simple', 'label', 'matrix', 'form', 'spaceDelimited', 'pipeDelimited', 'deepObject'] as const
const style = oneOf(styles, 'Serialization of arrays and objects (OpenAPI 3.1, style values).')
const explode = boolean('Separate values for the items of an array and the members of an object.')

/** The tools that the operator compiled from an OpenAPI document (mcp.md §2.1). */
export const mcpOpenApiDefinitions: Definitions = {
  ResolvedMcpOpenApi: object(
    'An HTTP API as an MCP server: its operations as tools, compiled from an OpenAPI document.',
    {
      backend: ref('BackendRef', 'Where requests go. Absent: to `static` of the target.'),
      title: string('Title of the API.'),
      version: string('Version of the document.'),
      instructions: string('Description of the API, for clients.'),
      path: string('Base path of the API, without a trailing slash.'),
      response: ref('CELExpression', 'Computes the result of a successful call. Output schemas of the tools do not apply.'),
      tools: list(ref('OpenApiTool'), 'Tools, in the order of the document.'),
      invalid: string('Why the document is unusable, for logs. The target has no tools.'),
    },
    ['title', 'version', 'path', 'tools'],
  ),
  OpenApiTool: object(
    'An operation as a tool.',
    {
      name: string('Name, unique in the target.'),
      definition: string('The tool as in a list of tools, in JSON.'),
      method: oneOf(['GET', 'PUT', 'POST', 'DELETE', 'PATCH'], 'Method of the request.'),
      path: string('Path template below the base path, with parameters in braces.'),
      parameters: list(ref('OpenApiParameter'), 'Parameters of path, query and headers.'),
      body: ref('OpenApiBody'),
    },
    ['name', 'definition', 'method', 'path', 'parameters'],
  ),
  OpenApiParameter: object(
    'A parameter of an operation.',
    {
      argument: string('Argument of the tool.'),
      name: string('Name in the request.'),
      in: oneOf(['path', 'query', 'header'], 'Part of the request.'),
      style,
      explode,
      allowReserved: boolean('Reserved characters that cannot begin another parameter are not percent-encoded.'),
      isJson: boolean('The value is sent as JSON; style does not apply.'),
    },
    ['argument', 'name', 'in', 'style', 'explode'],
  ),
  OpenApiBody: object(
    'The body of an operation.',
    {
      argument: string('Argument of the tool.'),
      mediaType: string('Content type of the request.'),
      kind: oneOf(['json', 'form', 'text'], 'How the argument is written.'),
      encoding: list(
        object('Encoding of a field of a form.', { name: string('Field.'), style, explode }, ['name', 'style', 'explode']),
        'Of forms. Default: form, exploded.',
      ),
    },
    ['argument', 'mediaType', 'kind'],
  ),
}
