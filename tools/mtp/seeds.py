"""Word lists that prompts.py makes prompts of. Written for this purpose."""


def words(text):
    return [w.strip() for w in text.split("|") if w.strip()]


TOPICS = words("""
photosynthesis | black holes | the water cycle | volcanoes | earthquakes | tides | rainbows | lightning | glaciers | coral reefs | rainforests | deserts | migration of birds | bees and pollination |
whales | octopuses | wolves | elephants | dinosaurs | evolution | DNA | vaccines | antibiotics | the immune system | the heart | the brain | sleep | dreams | memory | stress | headaches | diabetes |
healthy eating | vitamins | drinking water | running | yoga | swimming | weight training | meditation | mindfulness | breathing exercises | gravity | magnetism | electricity | sound waves | light | atoms |
the periodic table | chemical reactions | acids and bases | plastics | steel | glass | batteries | solar panels | wind power | nuclear energy | electric cars | bicycles | trains | airplanes | rockets |
satellites | the Moon | Mars | Jupiter | comets | stars | galaxies | the Big Bang | telescopes | microscopes | computers | the internet | programming | artificial intelligence | machine learning |
neural networks | robots | encryption | passwords | databases | operating systems | web browsers | smartphones | social media | video games | online shopping | blockchain | cloud computing |
prime numbers | fractions | algebra | geometry | probability | statistics | logic puzzles | chess | calculus | infinity | the number pi | the Pythagorean theorem | percentages | compound interest |
budgeting | saving money | investing | taxes | inflation | the stock market | insurance | mortgages | small businesses | marketing | job interviews | resumes | teamwork | leadership | time management |
procrastination | public speaking | negotiation | remote work | studying for exams | learning a language | reading habits | note taking | writing essays | poetry | novels | short stories | fairy tales |
myths | Shakespeare | the alphabet | grammar | punctuation | metaphors | journalism | libraries | museums | painting | sculpture | photography | architecture | music theory | the piano | the guitar |
jazz | opera | film making | theatre | dance | fashion | cooking pasta | baking bread | soups | salads | chocolate | coffee | tea | cheese | spices | rice | fermentation | gardening | compost | houseplants |
roses | trees | mushrooms | farming | fishing | beekeeping | camping | hiking | climbing | skiing | football | basketball | tennis | the Olympic Games | marathons | board games | card games |
ancient Egypt | ancient Greece | the Roman Empire | the Middle Ages | castles | knights | the Silk Road | the Renaissance | the printing press | the Industrial Revolution | the French Revolution |
the American Civil War | World War I | World War II | the Cold War | the space race | the Vikings | the Aztecs | the Incas | samurai | the Great Wall | the pyramids | pirates | explorers | maps | compasses |
democracy | elections | constitutions | human rights | laws and courts | taxation | the United Nations | immigration | education | universities | kindergarten | parenting | teenagers | friendship | marriage |
grandparents | pets | dogs | cats | parrots | goldfish | horses | travel | airports | hotels | passports | packing a suitcase | beaches | islands | mountains | rivers | oceans | forests | cities | villages |
traffic | public transport | recycling | climate change | pollution | endangered species | national parks | zoos | weather forecasts | hurricanes | snow | seasons | calendars | clocks | time zones |
holidays | birthdays | weddings | gifts | cleaning a kitchen | doing laundry | fixing a leaking tap | painting a room | moving house | buying a used car | first aid | fire safety | allergies | eyesight |
teeth | skin care | hair | posture | sitting at a desk | kindness | honesty | courage | patience | happiness | grief | anger | jealousy | gratitude | habits | goals | creativity | curiosity | boredom | loneliness |
philosophy | ethics | religion | Buddhism | Stoicism | free will | consciousness | language | numbers | money | trade | bridges | tunnels | skyscrapers | elevators | plumbing | concrete | paper | ink | clothing | shoes
""")

PEOPLE = words("""
Isaac Newton | Marie Curie | Albert Einstein | Charles Darwin | Galileo Galilei | Nikola Tesla | Thomas Edison | Leonardo da Vinci | Michelangelo | Vincent van Gogh | Frida Kahlo | Mozart | Beethoven | Bach |
Jane Austen | Charles Dickens | Mark Twain | Leo Tolstoy | Homer | Plato | Aristotle | Socrates | Confucius | Cleopatra | Julius Caesar | Alexander the Great | Genghis Khan | Napoleon | Joan of Arc | Queen Victoria |
Abraham Lincoln | George Washington | Martin Luther King | Nelson Mandela | Mahatma Gandhi | Winston Churchill | Rosa Parks | Florence Nightingale | Amelia Earhart | Neil Armstrong | Yuri Gagarin | Marco Polo |
Christopher Columbus | Ferdinand Magellan | Alan Turing | Grace Hopper | Rosalind Franklin | Louis Pasteur | Gregor Mendel | Archimedes | Euclid | Johannes Kepler | Steve Jobs | Pele | Muhammad Ali | Serena Williams
""")

PLACES = words("""
Italy | Spain | Germany | Japan | China | India | Brazil | Canada | Mexico | Egypt | Kenya | South Africa | Australia | New Zealand | Norway | Sweden | Greece | Turkey | Russia | Poland | Portugal | Ireland | Scotland |
London | Rome | Berlin | Tokyo | New York | Chicago | San Francisco | Sydney | Cairo | Istanbul | Mumbai | Beijing | Amsterdam | Vienna | Prague | Lisbon | Barcelona | Venice | Buenos Aires | Iceland | Peru | Vietnam |
Thailand | the Sahara | the Amazon | the Alps | the Himalayas | Antarctica | Hawaii | the Grand Canyon | Niagara Falls | Mount Everest | the Nile | the Mediterranean Sea
""")

CHARACTERS = words("""
a young wizard | an old fisherman | a lonely robot | a curious fox | a brave little mouse | a retired detective | a girl who can talk to trees | a boy who lost his shadow | a clumsy dragon | a baker | a clockmaker |
two sisters | a traveling musician | an astronaut | a ghost who is afraid of people | a king without a kingdom | a librarian | a shy giant | a train conductor | a spider | a gardener | a teacher | a sailor | a painter |
a cat who wants to fly | a snowman | a farmer and his donkey | a princess who hates dresses | a scientist | a taxi driver | twins | a talking stone | a spy | a doctor in a small village | a boy and his grandfather
""")
SETTINGS = words("""
a forest | a big city at night | a space station | a small island | a castle | a school | a ship in a storm | a desert | a snowy village | an old house | a market | a train | a museum | the future | the Middle Ages | a cave |
a hospital | a circus | a library | under the sea | on the Moon | a lighthouse on a rock | a bakery | a mountain hut
""")
THINGS = words("""
a lost key | an unexpected letter | a broken clock | a secret door | a magic pen | a missing painting | a promise | a storm | a birthday | a strange map | a golden coin | a song nobody remembers | a mirror | a bridge | a bet |
a red balloon | an old photograph | a box that must not be opened
""")

OBJECTS = words("""
fruits | vegetables | countries in Europe | countries in Africa | capital cities | rivers | mountains | planets | animals | birds | fish | insects | trees | flowers | musical instruments | sports | board games | colors | shapes |
languages | famous scientists | famous painters | famous books | inventions | programming languages | kitchen tools | garden tools | pieces of furniture | jobs | school subjects | hobbies | emotions | healthy snacks | desserts |
breakfast ideas | dinner ideas | drinks | spices | islands | oceans | chemical elements | parts of the body | types of weather | means of transport | materials | clothes | toys | things to do on a rainy day | good habits |
icebreaker questions | gift ideas | team names | names for a cat | names for a dog | book titles about the sea | reasons to exercise | ways to save water | ways to save energy | ways to relax | rules for a classroom |
questions for an interview | steps to start a business | tips for new parents | tips for travelers | tips for better photos | words that describe winter | words that rhyme with "light" | synonyms for "happy" | synonyms for "big"
""")

CODE = words("""
reverses a string | checks whether a number is prime | computes the factorial of a number | returns the n-th Fibonacci number | sorts a list of numbers | finds the largest element of a list | counts the words of a text |
counts how often each letter occurs | checks whether a word is a palindrome | merges two sorted lists | removes duplicates from a list | computes the average of a list | converts Celsius to Fahrenheit | reads a file line by line |
writes a list of names to a file | parses a CSV file | downloads a web page | computes the greatest common divisor | flattens a nested list | searches a sorted list with binary search | transposes a matrix | multiplies two matrices |
checks whether two words are anagrams | generates a random password | rolls two dice | draws a triangle of stars | prints the multiplication table | converts a number to binary | converts Roman numerals to integers | sums the digits of a number |
validates an email address | computes the distance between two points | implements a stack | implements a queue | implements a linked list | implements a binary tree | traverses a graph breadth first | finds the shortest path in a grid |
groups words by their first letter | counts vowels | capitalizes every word | rotates a list by k places | finds the second largest number | checks for balanced parentheses | computes compound interest | prints all even numbers up to n |
zips two lists into a dictionary | inverts a dictionary | filters a list of people by age | sorts a list of dictionaries by a key | formats a date | measures how long a function takes | retries a function three times | caches the results of a function
""")
CODE_LANGUAGES = ["Python", "Python", "Python", "Python", "JavaScript", "JavaScript", "C", "Java", "C++", "Go", "Rust", "SQL", "Bash"]

ASKS = words("""
What is the difference between weather and climate? | Why do leaves change color in autumn? | How does a refrigerator work? | Why is the sea salty? | How do airplanes stay in the air? | What causes the seasons? | How is cheese made? |
Why do we yawn? | How do magnets work? | What is inflation? | What does a mayor do? | How do I boil an egg? | How do I tie a tie? | How can I fall asleep faster? | How do I write a cover letter? | What should I say in a toast at a wedding? |
How do I remove a red wine stain? | How can I make new friends in a new city? | What is the fastest animal? | How many bones does a human have? | Who invented the telephone? | Who wrote Romeo and Juliet? | What is the largest country? |
How far away is the Sun? | What is the boiling point of water? | What are the three states of matter? | What is a prime number? | How do you add fractions? | What is 15% of 240? | If a train travels 60 miles in 1.5 hours, how fast is it? |
I have 3 apples and buy 5 more, then give away 2. How many do I have? | What is the square root of 144? | A shirt costs $40 and is 25% off. What does it cost now? | How do I stop being nervous before a test? | My dog barks all night. What can I do? |
I feel tired all the time. Any advice? | Can you recommend a good book? | What should I cook tonight with chicken and rice? | What are good questions for a first date? | How do I ask my boss for a raise? | Should I learn Python or Java first? |
What is the meaning of life? | Who are you? | What can you do? | Can you help me? | Hello! | Hi, how are you today? | Good morning | Thanks for your help! | Tell me a joke. | Tell me something interesting. | Write me a poem. | Surprise me. |
What is your name? | Who made you? | Are you a human? | What day is it today? | Do you like music? | Let's play a game. | I am bored. | I am sad today. | Give me a riddle. | Translate "good morning" to French. | How do you say thank you in Japanese? |
What is the capital of Germany? | What is the capital of Japan? | What is the capital of Australia? | What is the capital of Canada? | Who was the first person on the Moon? | When did World War II end? | What is H2O? | Why is the grass green? |
How many continents are there? | What is the tallest mountain in the world? | How does the stock market work? | What is a black hole? | How do vaccines work? | What is machine learning? | How do I learn to draw? | How do I start running? | What is a haiku?
""")

ABOUT = words("""
Explain {t} in simple terms. | What is important to know about {t}? | Write a short paragraph about {t}. | Give me three facts about {t}. | Write an introduction to {t} for beginners. | Tell me about {t}. | How would you explain {t} to a ten year old? |
What are the advantages and disadvantages of {t}? | What are common mistakes people make with {t}? | Write a short poem about {t}. | Write a haiku about {t}. | Why does {t} matter? | Describe the history of {t} in a few sentences. |
List five questions a student may ask about {t}, with answers. | Write a dialogue between two friends about {t}. | Give me tips about {t}. | What is the future of {t}? | Write a blog post about {t}. | Write an essay about {t}. | Make a quiz about {t} with 5 questions. |
I know nothing about {t}. Where do I start? | Give a definition of {t}. | Compare {t} and {u}. | What do {t} and {u} have in common? | Write a tweet about {t}. | Write a newspaper article about {t}. | Create an outline for a talk about {t}. |
Write an email to a friend about {t}. | Summarize what we know about {t}. | What are the most interesting things about {t}? | Can you give me an example from everyday life about {t}? | Debate: is {t} good or bad? | Write a speech about {t}. |
How does {t} work? | Explain step by step how one learns about {t}. | Make up a myth about {t}. | Write a review of a book about {t}. | What would a world without {t} look like? | Give me 10 keywords about {t}. | Write a lesson plan about {t}. |
hey, can you tell me sth about {t}? | need help with {t}!! | {t} | {t}? | Please explain {t}. Keep it short. | In one sentence: what is {t}? | Write a long and detailed explanation of {t}.
""")
PERSON_ASKS = words("""
Who was {p}? | What is {p} famous for? | Write a short biography of {p}. | What can we learn from {p}? | Tell me three facts about {p}. | Imagine an interview with {p}. | When did {p} live, and what did they do? | Write a letter from {p} to a young student.
""")
PLACE_ASKS = words("""
What should I see in {p}? | Plan a three day trip to {p}. | What is the weather like in {p}? | Tell me about the food of {p}. | Describe {p} in a few sentences. | What is {p} known for? | Write a postcard from {p}. | Give me five facts about {p}. | How do people live in {p}?
""")
STORY_ASKS = words("""
Write a story about {c} in {s}. | Tell me a story about {c} and {x}. | Write the beginning of a novel about {c}. | Write a funny story about {c} who finds {x}. | Tell a bedtime story about {c} in {s}. | Write a scene in which {c} meets {d}. |
Write a poem about {c} and {x}. | Continue this story: "It was late when {c} saw {x} ..." | Write a story set in {s} about {x}. Use simple words. | Write a dialogue between {c} and {d} about {x}. | Describe {s} as {c} sees it.
""")
LIST_ASKS = words("""
List 10 {o}. | Give me a list of {n} {o}. | Name {n} {o}. | Write a numbered list of {n} {o}, one per line. | What are some {o}? | List {n} {o} with a short description of each. | Make a bullet list of {o}. | Can you name a few {o}? |
Give me {n} {o} as a comma-separated list. | Make a table of {n} {o} with two columns. | Rank {n} {o} from best to worst and say why.
""")
CODE_ASKS = words("""
Write a {l} function that {k}. | Write a {l} program that {k}. | How do I write {l} code that {k}? | Show me a simple {l} example that {k}, with comments. | Write a {l} function that {k}, and explain how it works. | Write a unit test for a {l} function that {k}. |
{l}: {k}
""")

FIELDS = {
    "person": ["name", "age", "city", "email", "occupation"],
    "book": ["title", "author", "year", "genre", "pages"],
    "product": ["id", "name", "price", "currency", "in_stock"],
    "recipe": ["name", "servings", "ingredients", "steps", "minutes"],
    "movie": ["title", "director", "year", "rating", "actors"],
    "event": ["title", "date", "location", "organizer", "participants"],
    "order": ["order_id", "customer", "items", "total", "status"],
    "country": ["name", "capital", "population", "language", "currency"],
    "car": ["make", "model", "year", "color", "price"],
    "student": ["name", "grade", "subjects", "school", "average"],
    "animal": ["name", "species", "habitat", "diet", "lifespan"],
    "weather report": ["city", "temperature", "humidity", "wind", "forecast"],
    "server": ["host", "port", "protocol", "timeout", "enabled"],
    "song": ["title", "artist", "album", "duration", "genre"],
}
JSON_ASKS = words("""
Create a JSON object for a {e} with the fields {f}. | Give me a JSON array of {n} {e} objects with the fields {f}. | Write an example of a {e} as JSON. | Return only JSON: a list of {n} {e} records with {f}. | Write a YAML file for a {e} with {f}. |
Make a CSV table of {n} {e} records with the columns {f}. | Write an HTML table of {n} {e} records with {f}. | Write a SQL table for a {e} with the columns {f}, and {n} insert statements. | Write a Python class for a {e} with {f}.
""")

# With {a}, an earlier answer of the model itself.
FOLLOW_UPS = words("""
Summarize the following text in two sentences.\\n\\n{a} | Summarize:\\n{a} | {a}\\n\\nSummarize the text above. | Rewrite the following text in simpler words.\\n\\n{a} | Correct the spelling and grammar of this text:\\n\\n{a} |
Make this text shorter:\\n\\n{a} | Rewrite this more formally:\\n\\n{a} | Turn the following text into a bullet list.\\n\\n{a} | What is the main idea of this text?\\n\\n{a} | Give the following text a title.\\n\\n{a} | Translate to French:\\n\\n{a} |
Write three questions about this text.\\n\\n{a} | Repeat the following text exactly.\\n\\n{a} | Rewrite this text in the past tense:\\n\\n{a} | Read the text and list the most important facts.\\n\\n{a} | {a}\\n\\nContinue this text. |
Rewrite this text for children:\\n\\n{a} | Extract the names and places of this text as JSON.\\n\\n{a} | Replace the word "the" by "a" in this text:\\n\\n{a} | Is this text well written? Why?\\n\\n{a} | Explain this:\\n\\n{a}
""")
SECOND_TURNS = words("""
Can you say that in simpler words? | Tell me more. | Give me an example. | Why? | Can you make it shorter? | Continue. | And then? | Make a list of the most important points. | Are you sure? | How does that work? | Thanks! | Rewrite it as a poem. |
Now explain it to a child. | What else should I know? | Can you give me three more? | Translate that to Spanish. | That was wrong. Try again. | What do you think about it? | Please write it as a letter. | Add more details. | Make it funny. |
Summarize what you said. | Which of these is the most important one? | How can I use this? | Give me a quiz about that. | What are the risks? | Make it more formal. | Who says so? | Can you put that in a table? | ok | Write the same for a different topic.
""")
SYSTEMS = words("""
You are a helpful assistant. | You are a pirate. Answer like one. | You are a teacher who explains things patiently. | Answer in one sentence. | You are a careful programmer. | You write beautiful prose. | Be brief. | You are an expert who gives detailed answers. |
You answer clearly and correctly. | You are a friendly travel guide. | You always answer with a list.
""")
QUICKSTART_SYSTEM = "You are a helpful AI assistant named SmolLM. You answer clearly and correctly."
RAW = words("""
The history of {t} | Once upon a time, | In this article, we will look at {t}. | Chapter 1: {t}\\n\\n | Q: What is {t}?\\nA: | {t} is | Title: {t}\\n\\nAbstract: | def  | #include <stdio.h>\\n\\n | import os\\n | The most important thing about {t} is | Dear Sir or Madam, |
There are several reasons why {t} | # {t}\\n\\n## Introduction\\n\\n | According to a new study, {t}
""")
