import { call, type RequestRows } from './row.ts'

/** Expected conversions of Responses requests. */
export const responsesRows: RequestRows = {
  'Responses -> Converse: instructions, items, files and tools are converted': {
    from: 'responses',
    to: 'converse',
    body: {
      instructions: 'be brief',
      input: [
        { role: 'system', content: 'also' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'read' },
            { type: 'input_file', filename: 'my/notes.md', file_data: 'data:text/markdown;base64,QQ==' },
            { type: 'input_file', filename: 'my notes.md', file_data: 'data:text/markdown;base64,QQ==' },
          ],
        },
        { type: 'reasoning', id: 'r', summary: [] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call', call_id: 'c2', name: 'f', arguments: 'broken' },
        { type: 'custom_tool_call', call_id: 'c3', name: 'g', input: 'raw' },
        { type: 'function_call_output', call_id: 'c1', output: 'r' },
      ],
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }],
      text: { format: { type: 'text' } },
    },
    is: {
      system: [{ text: 'be brief' }, { text: 'also' }],
      messages: [
        {
          role: 'user',
          content: [
            { text: 'read' },
            { document: { format: 'md', name: 'my notes', source: { bytes: 'QQ==' } } },
            { document: { format: 'md', name: 'my notes [2]', source: { bytes: 'QQ==' } } },
          ],
        },
        {
          role: 'assistant',
          content: [{ toolUse: { toolUseId: 'c1', name: 'f', input: { a: 1 } } }, { toolUse: { toolUseId: 'c2', name: 'f', input: {} } }, { toolUse: { toolUseId: 'c3', name: 'g', input: { input: 'raw' } } }],
        },
        { role: 'user', content: [{ toolResult: { toolUseId: 'c1', content: [{ text: 'r' }] } }] },
      ],
      inferenceConfig: { maxTokens: 4096 },
      toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }] },
    },
  },
  'Responses -> Converse: a file of an unknown type is rejected': {
    from: 'responses',
    to: 'converse',
    body: { input: [{ role: 'user', content: [{ type: 'input_file', filename: 'x.zip', file_data: 'QQ==' }] }] },
    error: 'a file must be one of',
  },
  'Responses -> Chat Completions: string input, instructions and stream are converted': {
    from: 'responses',
    to: 'completions',
    body: { instructions: 'i', input: 'hi', max_output_tokens: 5, stream: true, reasoning: { effort: 'none' }, parallel_tool_calls: true },
    is: {
      model: 'm',
      messages: [
        { role: 'system', content: 'i' },
        { role: 'user', content: 'hi' },
      ],
      max_tokens: 5,
      stream: true,
      stream_options: { include_usage: true },
    },
  },
  'Responses -> Chat Completions: images and files are converted': {
    from: 'responses',
    to: 'completions',
    body: {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'what is this?' },
            { type: 'input_image', image_url: 'data:image/png;base64,QQ==' },
            { type: 'input_image', image_url: 'https://img.test/a.png' },
            { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,QQ==' },
          ],
        },
      ],
    },
    is: {
      model: 'm',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,QQ==' } },
            { type: 'image_url', image_url: { url: 'https://img.test/a.png' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,QQ==' } },
          ],
        },
      ],
    },
  },
  'Responses -> Chat Completions: consecutive calls become one message, outputs become tool messages': {
    from: 'responses',
    to: 'completions',
    body: {
      input: [
        {
          type: 'message',
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'a' },
            { type: 'output_text', text: 'b' },
          ],
        },
        { type: 'function_call', call_id: '1', name: 'f', arguments: '{ "a":1 }' },
        { type: 'function_call', call_id: '2', name: 'g', arguments: '{}' },
        { type: 'function_call_output', call_id: '1', output: 'x' },
      ],
      tools: [{ type: 'function', name: 'f', strict: true, parameters: {} }],
      tool_choice: { type: 'function', name: 'f' },
      text: { format: { type: 'json_schema', name: 'n', schema: {}, strict: true } },
    },
    is: {
      model: 'm',
      messages: [
        { role: 'assistant', content: 'a\nb' },
        { role: 'assistant', tool_calls: [call('1', 'f', '{ "a":1 }'), call('2', 'g', '{}')] },
        { role: 'tool', tool_call_id: '1', content: 'x' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: {}, strict: true } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: true } },
    },
  },
}
